"""Sweeps: many runs of one submission, with other values of its parameters."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name
from benchpool_scheduler.contract.submission import JobSubmission

Scalar = bool | int | float | Annotated[str, Meta(max_length=1000)]
"""What a parameter may be."""

ParameterName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$(?!\n)")]
MOST_TRIALS = 10_000
TASK = "array_task_id"
"""The one parameter of an array."""


class SweepMethod(StrEnum):
    """How the next values are chosen.

    ``grid``: each combination once. ``random``: drawn. ``tpe``: near what did well so far
    (tree-structured Parzen estimator, Bergstra et al. 2011).
    """

    GRID = "grid"
    RANDOM = "random"
    TPE = "tpe"


class SweepGoal(StrEnum):
    """Whether a small or a large figure is the better one."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class ListedValues(Struct, frozen=True, forbid_unknown_fields=True, tag="list", tag_field="kind"):
    """One of these values, each of equal right."""

    values: Annotated[list[Scalar], Meta(min_length=1, max_length=1000)]


class ValueRange(Struct, frozen=True, forbid_unknown_fields=True, tag="range", tag_field="kind"):
    """A number from ``low`` to ``high``, both included.

    Attributes:
        log: Equal ratios are equally likely, so that 1e-5 to 1e-4 has as much room as 1e-4 to 1e-3.
        whole: Whole numbers alone.
        points: So many values of it, evenly spread, are in a grid.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False
    points: Annotated[int, Meta(ge=2, le=1000)] | None = None


SweptValues = ListedValues | ValueRange


class EarlyStopping(Struct, frozen=True, forbid_unknown_fields=True):
    """Asynchronous successive halving (Li et al. 2020): what does worse is stopped early.

    A trial is judged when it reports step ``first``, ``first * factor``, ``first * factor**2``, and
    so on: it goes on where its figure is among the best of ``1 / factor`` that came so far before.
    """

    first: Annotated[int, Meta(ge=1, le=1_000_000_000)]
    factor: Annotated[int, Meta(ge=2, le=100)] = 3


class SweepPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """What a sweep tries, and when it has tried enough.

    Attributes:
        metric: The figure that trials report and that is judged, e.g. ``val_loss``.
        trials: At most so many; null for all of a grid.
        max_concurrent: So many trials at most are under way at once.
        seed: Draws are the same for the same seed.
        gpu_hours: No further trial begins when those before have used so many.
        good_enough: Everything else is stopped when a trial reports a figure as good as this.
        patience: No further trial begins when so many in a row were no better than the best before.
        array: Its one parameter, ``array_task_id``, lists the tasks of an array: each finds its
            number in ``BENCHPOOL_ARRAY_TASK_ID``, and nothing is added to arguments or cells.
    """

    parameters: Annotated[dict[ParameterName, SweptValues], Meta(min_length=1, max_length=50)]
    method: SweepMethod = SweepMethod.GRID
    metric: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    goal: SweepGoal = SweepGoal.MINIMIZE
    trials: Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None = None
    max_concurrent: Annotated[int, Meta(ge=1, le=1000)] = 4
    seed: Annotated[int, Meta(ge=0, le=2**31)] = 0
    early_stopping: EarlyStopping | None = None
    gpu_hours: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    good_enough: float | None = None
    patience: Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None = None
    array: bool = False


def tasks_of(plan: SweepPlan) -> list[int]:
    """Return the task numbers of an array, as they were listed.

    >>> tasks_of(SweepPlan({TASK: ListedValues([4, 6])}, array=True))
    [4, 6]
    """
    of = plan.parameters.get(TASK)
    listed = of.values if isinstance(of, ListedValues) else []
    return [one for one in listed if isinstance(one, int)]


class SweepRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A sweep as its user asks for it: the job of each trial, and what is tried.

    In ``submission`` the words ``{name}`` of script arguments, commands and environment stand for
    the trial's values; where a script names none of them, each is added as ``--name=value``.
    ``key`` makes a repeat of the same request harmless. ``trial_hours`` and ``trial_steps`` say how
    long a trial takes that goes to its end; only the preview reads them.
    """

    submission: JobSubmission
    plan: SweepPlan
    name: Name | None = None
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    trial_hours: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    trial_steps: Annotated[int, Meta(ge=1, le=10**15)] | None = None


class SweepsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which sweeps are listed."""

    all: Annotated[bool, Meta(description="Also those of others that you may see.")] = False
    limit: Annotated[int, Meta(ge=1, le=1000, description="At most so many.")] = 100


class SweepStop(Struct, frozen=True, forbid_unknown_fields=True):
    """How a sweep is stopped."""

    let_finish: Annotated[
        bool, Meta(description="Trials under way go on to their end; only no further one begins.")
    ] = False
    reason: Annotated[str, Meta(max_length=500, description="Why; its owner reads it.")] | None = (
        None
    )


class SweepState(StrEnum):
    """``running``: trials begin and end. ``ending``: none begins any more. ``over``: all ended."""

    RUNNING = "running"
    ENDING = "ending"
    OVER = "over"


class TrialRow(Struct, frozen=True):
    """A trial, as people see it.

    Attributes:
        job: The job of the trial; null when its record was removed.
        state: ``open``, ``done``, ``stopped-early``, ``failed`` or ``cancelled``.
        value: The newest figure of the sweep's metric, at ``step``; null where there is none.
    """

    number: int
    job: str | None
    parameters: dict[str, Scalar]
    state: str
    job_state: str | None
    value: float | None
    step: int | None
    gpu_hours: float


class Sweep(Struct, frozen=True):
    """A sweep: what it tries, what came of it so far, and what it does next.

    Attributes:
        text: Where it stands, in a sentence.
        problem: Why the next trial could not begin, null while nothing is wrong.
        trials: Best first, then those without a figure by number.
        best: Number of the best trial, null where none has a figure.
        size: How many trials there are at most.
    """

    id: str
    name: str
    user: str
    project: str
    state: SweepState
    text: str
    problem: str | None
    created: datetime
    ended: datetime | None
    plan: SweepPlan
    size: int
    trials: list[TrialRow]
    best: int | None
    gpu_hours: float
    url: str


class SweepPreview(Struct, frozen=True):
    """What a sweep would cost, before it is sent.

    Attributes:
        text: In a sentence.
        gpu_hours: Null where nothing is known of how long a trial takes.
        first: The values of the first trials.
    """

    text: str
    trials: int
    gpu_hours: float | None
    hours: float | None
    first: list[dict[str, Scalar]]
