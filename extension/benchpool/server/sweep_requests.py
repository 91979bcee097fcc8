"""Sweep request of the dialog: values as typed, and the expected cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool.drafts import Draft
from benchpool_scheduler.client import array_tasks, sweep_plans
from benchpool_scheduler.contract.sweeps import MOST_TRIALS, ParameterName, SweepPlan, SweepRequest
from benchpool_scheduler.errors import InvalidInput

Amount = Annotated[float, Meta(gt=0, le=1e6)]


class DialogSweep(Struct, frozen=True, forbid_unknown_fields=True):
    """Sweep requested in the dialog: its values and its limits, as users type them.

    Attributes:
        array: Task numbers as for ``--array``, ``0-31%4``. Then it is an array, and no other field
            is used.
        goal: Null to derive it from the name of the metric.
        stop_early: The first step at which a trial is judged, or ``STEP:FACTOR``.
        trial_hours: Duration of a trial in hours; only used for the predicted cost.
    """

    values: Annotated[
        dict[ParameterName, Annotated[str, Meta(max_length=10_000)]],
        Meta(max_length=50),
    ] = {}
    array: Annotated[str, Meta(min_length=1, max_length=10_000)] | None = None
    metric: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    goal: Literal["minimize", "maximize"] | None = None
    trials: Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None = None
    at_once: Annotated[int, Meta(ge=1, le=1000)] = 4
    stop_early: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    gpu_hours: Amount | None = None
    trial_hours: Amount | None = None


def request_of(sweep: DialogSweep, draft: Draft) -> SweepRequest:
    """Return the sweep of a draft.

    Raises:
        InvalidInput: A value is invalid or a name is no parameter; its field begins with
        ``sweep.``.
    """
    try:
        plan = _plan_of(sweep)
        if draft.selection is not None and not plan.array:
            sweep_plans.check_names(plan.parameters, [one.name for one in draft.parameters])
    except InvalidInput as wrong:
        field = f"sweep.{wrong.field or 'values'}"
        raise InvalidInput(
            wrong.message, code=wrong.code, field=field, numbers=wrong.numbers
        ) from None
    submission = draft.submission
    return SweepRequest(
        submission, plan, submission.name, submission.key, trial_hours=sweep.trial_hours
    )


def _plan_of(sweep: DialogSweep) -> SweepPlan:
    if sweep.array is not None:
        others = ("metric", "goal", "trials", "stop_early", "gpu_hours")
        given = (name for name in others if getattr(sweep, name) is not None)
        array_tasks.check_alone([*(["sweep"] if sweep.values else []), *given])
        return array_tasks.plan_of(sweep.array)
    if not sweep.values:
        raise InvalidInput("Name a value to try, or the tasks of an array.", field="values")
    return sweep_plans.plan_of(
        sweep.values,
        metric=sweep.metric,
        goal=sweep.goal,
        trials=sweep.trials,
        at_once=sweep.at_once,
        stop_early=sweep.stop_early,
        gpu_hours=sweep.gpu_hours,
    )


def words_of(sweep: DialogSweep) -> list[str]:
    """Return the equivalent options of ``benchpool submit`` and ``%%train``.

    >>> words_of(DialogSweep(array="0-31%4"))
    ['--array', '0-31%4']

    >>> words_of(DialogSweep({"lr": "0.1, 0.2"}, metric="loss", trials=3))
    ['--sweep', 'lr=0.1, 0.2', '--metric', 'loss', '--trials', '3']
    """
    return list(_words(sweep))


def _words(sweep: DialogSweep) -> Iterator[str]:
    if sweep.array is not None:
        yield from ("--array", sweep.array)
        return
    for name, values in sweep.values.items():
        yield from ("--sweep", f"{name}={values}")
    if sweep.goal is not None:
        yield f"--{sweep.goal}"
    for option, value in (
        ("--metric", sweep.metric),
        ("--trials", sweep.trials),
        ("--at-once", None if sweep.at_once == 4 else sweep.at_once),
        ("--stop-early", sweep.stop_early),
        ("--gpu-hours", sweep.gpu_hours),
    ):
        if value is not None:
            yield from (option, f"{value:g}" if isinstance(value, float) else str(value))
