"""Parsing of a sweep's plan, as written in a terminal or in Python. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from benchpool_scheduler.contract.sweeps import (
    EarlyStopping,
    ListedValues,
    Scalar,
    SweepGoal,
    SweepMethod,
    SweepPlan,
    SweptValues,
    ValueRange,
)
from benchpool_scheduler.contract.swept_values import parse
from benchpool_scheduler.curves.figures import goal_of
from benchpool_scheduler.errors import InvalidInput

Written = str | Sequence[Scalar] | SweptValues
"""Values of a parameter: typed text, or a list."""


def plan_of(
    parameters: Mapping[str, Written],
    *,
    method: str | None = None,
    metric: str | None = None,
    goal: Literal["minimize", "maximize"] | None = None,
    trials: int | None = None,
    at_once: int = 4,
    stop_early: int | str | None = None,
    gpu_hours: float | None = None,
    good_enough: float | None = None,
    patience: int | None = None,
    sweep_seed: int = 0,
) -> SweepPlan:
    """Return the plan of a sweep.

    Args:
        method: By default ``random`` if one parameter is a range without points, else ``grid``.
        goal: By default derived from the name of the metric.
        stop_early: First step, or ``STEP:FACTOR``.
        sweep_seed: Seed of the values that are drawn.

    Errors: InvalidInput.

    >>> plan_of({"lr": "log:1e-5:1e-3"}, metric="accuracy", trials=9, stop_early="100:4").method
    <SweepMethod.RANDOM: 'random'>
    """
    swept = {name: values_of(name, written) for name, written in parameters.items()}
    has_range = any(isinstance(of, ValueRange) and of.points is None for of in swept.values())
    chosen = method or (SweepMethod.RANDOM if has_range else SweepMethod.GRID)
    if chosen not in list(SweepMethod):
        raise InvalidInput(
            f"{chosen!r} is not a method. Use {', '.join(SweepMethod)}.", field="method"
        )
    return SweepPlan(
        parameters=swept,
        method=SweepMethod(chosen),
        metric=metric,
        goal=_goal(metric, goal),
        trials=trials,
        max_concurrent=at_once,
        seed=sweep_seed,
        early_stopping=_stopping(stop_early),
        gpu_hours=gpu_hours,
        good_enough=good_enough,
        patience=patience,
    )


def pair_of(text: str) -> tuple[str, SweptValues]:
    """Return name and values of ``NAME=VALUES``. Errors: InvalidInput."""
    name, sign, values = text.partition("=")
    if not sign or not name.strip().isidentifier():
        raise InvalidInput(
            f"--sweep {text} is not NAME=VALUES, e.g. --sweep lr=log:3e-5:3e-3.", field="sweep"
        )
    return name.strip(), parse(values, name.strip())


def values_of(name: str, written: Written) -> SweptValues:
    """Return the values of a parameter. Errors: InvalidInput.

    >>> values_of("lr", [0.1, 0.01]) == values_of("lr", "0.1, 0.01")
    True
    """
    if isinstance(written, ListedValues | ValueRange):
        return written
    if isinstance(written, str):
        return parse(written, name)
    values = list(written)
    if not values or not all(isinstance(one, bool | int | float | str) for one in values):
        raise InvalidInput(
            f"The values of {name!r} must be numbers, words or truth values, at least one.",
            field=name,
        )
    return ListedValues(values)


def check_names(swept: Mapping[str, object], known: Sequence[str]) -> None:
    """Refuse names that are not parameters of a notebook. Errors: InvalidInput."""
    for name in swept:
        if name not in known:
            has = f"its parameters are {', '.join(known)}" if known else "it has none"
            raise InvalidInput(
                f"The notebook has no parameter {name!r}: {has}. A parameter is a name that is "
                "bound once, to a constant at the top of a cell.",
                field=name,
            )


def _goal(metric: str | None, goal: str | None) -> SweepGoal:
    if goal is not None and goal not in list(SweepGoal):
        raise InvalidInput(f"{goal!r} is not a goal. Use minimize or maximize.", field="goal")
    if goal is not None:
        return SweepGoal(goal)
    known = None if metric is None else goal_of(metric)
    if metric is not None and known is None:
        raise InvalidInput(
            f"The name of {metric} does not show whether less or more is better. Add minimize or "
            "maximize.",
            field="goal",
        )
    return SweepGoal.MAXIMIZE if known == "max" else SweepGoal.MINIMIZE


def _stopping(rule: int | str | None) -> EarlyStopping | None:
    if rule is None:
        return None
    step, _, factor = str(rule).partition(":")
    try:
        first, share = int(step), int(factor or 3)
    except ValueError:
        first = share = 0
    if first < 1 or share < 2:
        raise InvalidInput(
            f"Early stopping {rule} is not STEP or STEP:FACTOR, e.g. 100 or 100:4.",
            field="stop_early",
        )
    return EarlyStopping(first, share)
