"""Sweep request of the dialog: values as typed, and the expected cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from benchpool.drafts import Draft
from benchpool.server import several_values
from benchpool_scheduler.client import array_tasks, sweep_plans
from benchpool_scheduler.contract.sweeps import (
    MOST_TRIALS,
    ParameterName,
    SweepMethod,
    SweepPlan,
    SweepRequest,
)
from benchpool_scheduler.errors import InvalidInput

Amount = Annotated[float, Meta(gt=0, le=1e6)]


class DialogSweep(Struct, frozen=True, forbid_unknown_fields=True):
    """Sweep requested in the dialog: its values and its limits, as users type them.

    Attributes:
        values: Without values and ``array`` no sweep is sent, whatever the other fields are.
        array: Task numbers as for ``--array``, ``0-31%4``. Then it is an array, and no other field
            is used.
        method: Null for ``random`` if a name has a range, else ``grid``.
        goal: Null to derive it from the name of the metric.
        stop_early: The first step at which a trial is judged, or ``STEP:FACTOR``.
        trial_hours: Duration of a complete trial in hours, and ``trial_steps`` its steps; only used
            for the predicted cost.
    """

    values: Annotated[
        dict[ParameterName, Annotated[str, Meta(max_length=10_000)]],
        Meta(max_length=50),
    ] = {}
    array: Annotated[str, Meta(min_length=1, max_length=10_000)] | None = None
    method: SweepMethod | None = None
    metric: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    goal: Literal["minimize", "maximize"] | None = None
    trials: Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None = None
    at_once: Annotated[int, Meta(ge=1, le=1000)] = 4
    stop_early: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    patience: Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None = None
    good_enough: float | None = None
    gpu_hours: Amount | None = None
    trial_hours: Amount | None = None
    trial_steps: Annotated[int, Meta(ge=1, le=10**15)] | None = None

    @property
    def has_runs(self) -> bool:
        """Whether it has values or tasks; otherwise one job is sent."""
        return bool(self.values) or self.array is not None

    def joined(self, several: Mapping[str, str]) -> DialogSweep:
        """Return the sweep with more values, by name. Errors: InvalidInput for a name of both."""
        for name in several.keys() & self.values.keys():
            raise InvalidInput(
                f"`{name}` has values in its own field and below Many values. Keep one of them.",
                field=f"sweep.{name}",
            )
        return structs.replace(self, values={**self.values, **several})


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
            several_values.check_types(plan.parameters, draft.parameters)
    except InvalidInput as wrong:
        field = f"sweep.{wrong.field or 'values'}"
        raise InvalidInput(
            wrong.message, code=wrong.code, field=field, numbers=wrong.numbers
        ) from None
    submission = draft.submission
    return SweepRequest(
        submission,
        plan,
        submission.name,
        submission.key,
        trial_hours=sweep.trial_hours,
        trial_steps=sweep.trial_steps,
    )


def _plan_of(sweep: DialogSweep) -> SweepPlan:
    if sweep.array is not None:
        others = (
            "method", "metric", "goal", "trials", "stop_early", "patience", "good_enough",
            "gpu_hours",
        )  # fmt: skip
        given = (name for name in others if getattr(sweep, name) is not None)
        array_tasks.check_alone([*(["sweep"] if sweep.values else []), *given])
        return array_tasks.plan_of(sweep.array)
    return sweep_plans.plan_of(
        sweep.values,
        method=sweep.method,
        metric=sweep.metric,
        goal=sweep.goal,
        trials=sweep.trials,
        at_once=sweep.at_once,
        stop_early=sweep.stop_early,
        gpu_hours=sweep.gpu_hours,
        good_enough=sweep.good_enough,
        patience=sweep.patience,
    )


def described(sweep: DialogSweep | None) -> dict[str, str]:
    """Return the valid values of each name in words."""
    found = {}
    for name, text in (sweep.values if sweep else {}).items():
        with suppress(InvalidInput):
            found[name] = several_values.described(sweep_plans.values_of(name, text))
    return found


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
        ("--method", sweep.method),
        ("--metric", sweep.metric),
        ("--trials", sweep.trials),
        ("--at-once", None if sweep.at_once == 4 else sweep.at_once),
        ("--stop-early", sweep.stop_early),
        ("--patience", sweep.patience),
        ("--good-enough", sweep.good_enough),
        ("--gpu-hours", sweep.gpu_hours),
    ):
        if value is not None:
            yield from (option, f"{value:g}" if isinstance(value, float) else str(value))
