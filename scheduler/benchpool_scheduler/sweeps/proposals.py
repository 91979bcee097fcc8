"""Values of the next trial: the next of a grid, random ones, or values near the best ones."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from benchpool_scheduler.contract.sweeps import (
    MOST_TRIALS,
    ListedValues,
    Scalar,
    SweepMethod,
    SweepPlan,
    SweptValues,
    ValueRange,
)
from benchpool_scheduler.contract.swept_values import checked
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.sweeps import arrays
from benchpool_scheduler.sweeps.trials import SweepTrial


def check(plan: SweepPlan) -> None:
    """Reject a plan that cannot be carried out. Errors: InvalidInput, with the field's name."""
    for name, of in plan.parameters.items():
        checked(of, name)
    size(plan)
    if plan.array:
        arrays.check(plan)
    needed = {
        "method": plan.method is SweepMethod.TPE,
        "early_stopping": plan.early_stopping is not None,
        "good_enough": plan.good_enough is not None,
        "patience": plan.patience is not None,
    }
    for field, is_asked in needed.items():
        if is_asked and plan.metric is None:
            raise InvalidInput(
                f"{_ASKED[field]} needs a metric. Name the metric that the trials report with "
                "benchpool.log(...).",
                field="metric",
            )


_ASKED = {
    "method": "The method tpe",
    "early_stopping": "Stopping trials early",
    "good_enough": "Stopping at a good enough value",
    "patience": "Stopping without improvement",
}


def size(plan: SweepPlan) -> int:
    """Return the maximum number of trials of a plan.

    Errors: InvalidInput if the number is unknown or too large.

    >>> size(SweepPlan({"lr": ListedValues([0.1, 0.2]), "seed": ListedValues([0, 1, 2])}))
    6
    """
    if plan.method is not SweepMethod.GRID:
        if plan.trials is None:
            raise InvalidInput(
                f"A sweep with the method {plan.method} needs a number of trials.",
                field="trials",
            )
        return plan.trials
    combinations = math.prod(len(grid_values(one, name)) for name, one in plan.parameters.items())
    if plan.trials is None and combinations > MOST_TRIALS:
        raise InvalidInput(
            f"The grid has {combinations} combinations; the limit is {MOST_TRIALS}. Use fewer "
            "values, or set a number of trials.",
            field="parameters",
        )
    return min(combinations, plan.trials or combinations)


def propose(plan: SweepPlan, trials: Sequence[SweepTrial]) -> Mapping[str, Scalar] | None:
    """Return the values of the next trial, or None if there is none.

    The same plan and the same trials give the same values.

    Errors: InvalidInput for a plan that cannot be carried out.
    """
    number = len(trials)
    if number >= size(plan):
        return None
    if plan.method is SweepMethod.GRID:
        return combination(plan.parameters, number)
    if plan.method is SweepMethod.TPE:
        from benchpool_scheduler.sweeps import parzen

        return parzen.propose(plan, trials)
    drawing = random.Random(f"{plan.seed}/{number}")  # noqa: S311 (no secret)
    return {name: drawn(checked(of, name), drawing) for name, of in plan.parameters.items()}


def combination(parameters: Mapping[str, SweptValues], number: int) -> dict[str, Scalar]:
    """Return a combination of a grid; the last parameter changes first.

    >>> combination({"lr": ListedValues([0.1, 0.2]), "seed": ListedValues([0, 1])}, 2)
    {'lr': 0.2, 'seed': 0}
    """
    chosen: dict[str, Scalar] = {}
    for name, of in reversed(list(parameters.items())):
        values = grid_values(of, name)
        number, place = divmod(number, len(values))
        chosen[name] = values[place]
    return {name: chosen[name] for name in parameters}


def grid_values(of: SweptValues, name: str) -> list[Scalar]:
    """Return the values of one parameter in a grid.

    Errors: InvalidInput for a range without a number of points.

    >>> grid_values(ValueRange(1e-4, 1e-1, log=True, points=4), "lr")
    [0.0001, 0.001, 0.01, 0.1]
    """
    checked(of, name)
    if isinstance(of, ListedValues):
        return list(of.values)
    if of.points is None and of.whole and of.high - of.low < 1000:
        return list(range(int(of.low), int(of.high) + 1))
    if of.points is None:
        raise InvalidInput(
            f"The range of {name!r} has no number of points for a grid. Add it "
            f"(log:{of.low:g}:{of.high:g}:5 has 5), list the values, or use the method random.",
            field=name,
        )
    spread = [_between(of, place / (of.points - 1)) for place in range(of.points)]
    return list(dict.fromkeys(spread))


def drawn(of: SweptValues, drawing: random.Random) -> Scalar:
    """Return one of the values, drawn uniformly on their scale."""
    if isinstance(of, ListedValues):
        return drawing.choice(of.values)
    if of.whole and not of.log:
        return drawing.randint(int(of.low), int(of.high))
    return _between(of, drawing.random())


def _between(of: ValueRange, share: float) -> int | float:
    """Return the number at this share of the range, exact at both ends."""
    if of.log:
        found = of.low * math.exp(share * math.log(of.high / of.low))
    else:
        found = of.low + share * (of.high - of.low)
    found = min(max(float(f"{found:.12g}"), of.low), of.high)
    return round(found) if of.whole else found
