"""Sweeps: many runs of one submission, with different values of its parameters."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name
from benchpool_scheduler.contract.submission import JobSubmission

Scalar = bool | int | float | Annotated[str, Meta(max_length=1000)]
"""Value of a parameter."""

ParameterName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$(?!\n)")]
MOST_TRIALS = 10_000
MOST_SEED = 2**31
TASK = "array_task_id"
"""Name of the only parameter of an array."""
BELOW_SINGLE_JOBS = 10
"""Priority subtracted for a trial, so that single jobs of its project go before trials."""


def trial_priority(asked: int) -> int:
    """Return the priority of each trial of a sweep that was sent with this priority.

    >>> trial_priority(50), trial_priority(3)
    (40, 0)
    """
    return max(0, asked - BELOW_SINGLE_JOBS)


class SweepMethod(StrEnum):
    """Method that chooses the next values.

    ``grid``: each combination once. ``random``: random draws. ``tpe``: values near the best ones so
    far (tree-structured Parzen estimator, Bergstra et al. 2011).
    """

    GRID = "grid"
    RANDOM = "random"
    TPE = "tpe"


class SweepGoal(StrEnum):
    """Direction of a better metric: small or large."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class ListedValues(Struct, frozen=True, forbid_unknown_fields=True, tag="list", tag_field="kind"):
    """List of values, all equally likely."""

    values: Annotated[list[Scalar], Meta(min_length=1, max_length=1000)]


class ValueRange(Struct, frozen=True, forbid_unknown_fields=True, tag="range", tag_field="kind"):
    """Range of numbers from ``low`` to ``high``, both included.

    Attributes:
        log: Logarithmic scale: 1e-5 to 1e-4 is as likely as 1e-4 to 1e-3.
        whole: Whole numbers only.
        points: Number of evenly spaced values in a grid.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False
    points: Annotated[int, Meta(ge=2, le=1000)] | None = None


SweptValues = ListedValues | ValueRange


class EarlyStopping(Struct, frozen=True, forbid_unknown_fields=True):
    """Asynchronous successive halving (Li et al. 2020): worse trials are stopped early.

    A trial is judged when it reports step ``first``, ``first * factor``, ``first * factor**2``, and
    so on. It continues if its metric is among the best ``1 / factor`` of the trials that have
    reached the step.
    """

    first: Annotated[int, Meta(ge=1, le=1_000_000_000)]
    factor: Annotated[int, Meta(ge=2, le=100)] = 3


class SweepPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """Plan of a sweep: its values, and when it ends.

    Attributes:
        metric: Metric that trials report and that is judged, e.g. ``val_loss``.
        trials: Maximum number of trials; null for all of a grid.
        max_concurrent: Maximum number of concurrent trials.
        seed: Seed of the random draws.
        gpu_hours: GPU-hours used by trials after which no further trial begins.
        good_enough: A trial that reports a metric at least this good stops all others.
        patience: No further trial begins after this number of trials in a row without improvement.
        array: Its only parameter, ``array_task_id``, lists the tasks of an array. Each task finds
            its number in ``BENCHPOOL_ARRAY_TASK_ID``. Arguments and cells stay unchanged.
    """

    parameters: Annotated[dict[ParameterName, SweptValues], Meta(min_length=1, max_length=50)]
    method: SweepMethod = SweepMethod.GRID
    metric: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    goal: SweepGoal = SweepGoal.MINIMIZE
    trials: Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None = None
    max_concurrent: Annotated[int, Meta(ge=1, le=1000)] = 4
    seed: Annotated[int, Meta(ge=0, le=MOST_SEED)] = 0
    early_stopping: EarlyStopping | None = None
    gpu_hours: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    good_enough: float | None = None
    patience: Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None = None
    array: bool = False


def tasks_of(plan: SweepPlan) -> list[int]:
    """Return the task numbers of an array, in their listed order.

    >>> tasks_of(SweepPlan({TASK: ListedValues([4, 6])}, array=True))
    [4, 6]
    """
    of = plan.parameters.get(TASK)
    listed = of.values if isinstance(of, ListedValues) else []
    return [one for one in listed if isinstance(one, int)]


class SweepRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Sweep requested by a user: the job of each trial, and the values to try.

    In ``submission`` the placeholders ``{name}`` in script arguments, commands and environment
    stand for the trial's values. If a script names none of them, each is added as ``--name=value``.
    ``key`` makes a repeat of the same request harmless. ``trial_hours`` and ``trial_steps`` are the
    length of a complete trial. Only the preview reads them; without ``trial_hours`` it takes the
    run times of the user's similar jobs.
    """

    submission: JobSubmission
    plan: SweepPlan
    name: Name | None = None
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    trial_hours: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    trial_steps: Annotated[int, Meta(ge=1, le=10**15)] | None = None


class SweepsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Filter of sweeps."""

    all: Annotated[bool, Meta(description="Include sweeps of other users that you may see.")] = (
        False
    )
    limit: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of sweeps.")] = 100


class SweepStop(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``stop_sweep``."""

    let_finish: Annotated[
        bool, Meta(description="Let running trials finish; no further trials begin.")
    ] = False
    keep_best: Annotated[
        bool,
        Meta(description="Let the best trial finish and end the others; no further trials begin."),
    ] = False
    reason: (
        Annotated[str, Meta(max_length=500, description="Reason, shown to its owner.")] | None
    ) = None


class SweepState(StrEnum):
    """State of a sweep.

    ``running``: trials begin and end. ``ending``: no further trial begins. ``over``: all have
    ended.
    """

    RUNNING = "running"
    ENDING = "ending"
    OVER = "over"


class TrialRow(Struct, frozen=True):
    """Trial of a sweep.

    Attributes:
        job: Job of the trial; null if its record was removed.
        state: ``open``, ``done``, ``stopped-early``, ``failed`` or ``cancelled``.
        value: Newest value of the sweep's metric, at ``step``; null for none.
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
    """Sweep with its plan, its trials so far, and its state.

    Attributes:
        text: State in a sentence.
        problem: Why the next trial could not begin, null for no problem.
        size: Maximum number of trials.
        trials: Best first, then those without a metric value by number.
        best: Number of the best trial, null if none has a metric value.
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
    """Preview of a sweep's cost, before it is created.

    Attributes:
        text: Summary in a sentence.
        gpu_hours: Null if the length of a trial is unknown.
        trial_hours: Length of a complete trial: as given, or the median of similar jobs.
        first: Values of the first trials.
    """

    text: str
    trials: int
    gpu_hours: float | None
    hours: float | None
    trial_hours: float | None
    first: list[dict[str, Scalar]]
