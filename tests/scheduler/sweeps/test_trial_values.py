"""Choice of the values of the trials of a sweep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.sweeps.proposals import check, propose, size
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialPoint, TrialState

SPACE: dict[str, SweptValues] = {
    "lr": ValueRange(1e-5, 1e-1, log=True),
    "width": ValueRange(8, 512, whole=True),
    "optimizer": ListedValues(["adam", "sgd", 1, True, 1.0]),
}


def all_proposed(plan: SweepPlan) -> list[Mapping[str, Scalar]]:
    trials: list[SweepTrial] = []
    while (values := propose(plan, trials)) is not None:
        trials.append(SweepTrial(len(trials), values, TrialState.DONE))
    return [trial.parameters for trial in trials]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_grid_contains_each_combination_once(sizes: list[int]) -> None:
    plan = SweepPlan(
        {f"p{place}": ListedValues(list(range(many))) for place, many in enumerate(sizes)}
    )
    found = all_proposed(plan)
    assert len(found) == size(plan) == math.prod(sizes)
    assert len({tuple(values.items()) for values in found}) == len(found)


@pytest.mark.parametrize("method", [SweepMethod.RANDOM, SweepMethod.TPE])
def test_drawn_values_are_in_range_and_reproducible(
    method: SweepMethod,
) -> None:
    plan = SweepPlan(SPACE, method=method, metric="loss", trials=12, seed=7)
    trials: list[SweepTrial] = []
    for number in range(12):
        values = propose(plan, trials)
        assert values is not None
        assert values == propose(plan, trials)
        lr, width, optimizer = values["lr"], values["width"], values["optimizer"]
        assert isinstance(lr, float)
        assert 1e-5 <= lr <= 1e-1
        assert type(width) is int
        assert 8 <= width <= 512
        assert (type(optimizer), optimizer) in [
            (type(one), one) for one in ("adam", "sgd", 1, True, 1.0)
        ]
        points = (TrialPoint(1, abs(math.log10(lr) + 3), at=number),)
        trials.append(SweepTrial(number, values, TrialState.DONE, points))
    assert propose(plan, trials) is None


def test_tpe_beats_random_search() -> None:
    def best(method: SweepMethod, seed: int) -> float:
        space: dict[str, SweptValues] = {"x": ValueRange(-5, 5), "y": ValueRange(-5, 5)}
        plan = SweepPlan(space, method=method, metric="loss", trials=40, seed=seed)
        trials: list[SweepTrial] = []
        while (values := propose(plan, trials)) is not None:
            loss = (float(values["x"]) - 2) ** 2 + (float(values["y"]) + 1) ** 2
            trials.append(
                SweepTrial(len(trials), values, TrialState.DONE, (TrialPoint(1, loss, 0.0),))
            )
        return min(trial.points[0].value for trial in trials)

    seeds = range(5)
    drawn = statistics.median(best(SweepMethod.RANDOM, seed) for seed in seeds)
    learned = statistics.median(best(SweepMethod.TPE, seed) for seed in seeds)
    assert learned < drawn / 2


def test_tpe_handles_open_failed_and_stopped_trials() -> None:
    plan = SweepPlan(
        SPACE, method=SweepMethod.TPE, metric="acc", goal=SweepGoal.MAXIMIZE, trials=30
    )
    states = [TrialState.DONE, TrialState.STOPPED_EARLY, TrialState.OPEN, TrialState.FAILED]
    trials: list[SweepTrial] = []
    while (values := propose(plan, trials)) is not None:
        number = len(trials)
        points = (TrialPoint(1, math.nan, 0.0), TrialPoint(2, number / 30, 1.0))
        state = states[number % 4]
        reported = () if state is TrialState.FAILED else points
        trials.append(SweepTrial(number, values, state, reported))
    assert len(trials) == 30


@pytest.mark.parametrize(
    ("plan", "field", "refusal"),
    [
        (
            SweepPlan({"lr": ValueRange(0, 1)}),
            "lr",
            "of 'lr' has no number of points for a grid. Add it (log:0:1:5 has 5)",
        ),
        (
            SweepPlan({"lr": ValueRange(0, 1)}, method=SweepMethod.RANDOM),
            "trials",
            "needs a number of trials",
        ),
        (
            SweepPlan({f"p{n}": ListedValues(list(range(100))) for n in range(3)}),
            "parameters",
            "The grid has 1000000 combinations; the limit is 10000",
        ),
        (
            SweepPlan({"a": ListedValues([1])}, early_stopping=EarlyStopping(10)),
            "metric",
            "Stopping trials early needs a metric",
        ),
    ],
)
def test_impossible_plan_is_rejected(plan: SweepPlan, field: str, refusal: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(plan)
    assert refused.value.field == field
    assert refusal in refused.value.message
