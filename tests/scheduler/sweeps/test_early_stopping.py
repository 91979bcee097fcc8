"""Early stopping of trials, and the end of a sweep."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.sweeps import (
    EarlyStopping,
    ListedValues,
    SweepGoal,
    SweepMethod,
    SweepPlan,
    ValueRange,
)
from benchpool_scheduler.sweeps.decisions import EnoughReason, SweepActs, next_acts
from benchpool_scheduler.sweeps.halving import first_reports, share_of_work, to_stop
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialPoint, TrialState, ranked

RULE = EarlyStopping(first=1, factor=3)
figures = st.floats(0, 1, allow_nan=False) | st.just(math.nan)


def arrivals(values: list[float]) -> list[SweepTrial]:
    return [
        SweepTrial(number, {}, TrialState.OPEN, (TrialPoint(1, value, at=float(number)),))
        for number, value in enumerate(values)
    ]


@given(st.lists(figures, min_size=1, max_size=40))
def test_best_trial_is_never_stopped_and_decisions_are_stable(values: list[float]) -> None:
    trials = arrivals(values)
    stopped = {one.number for one in to_stop(trials, RULE, SweepGoal.MINIMIZE)}
    best = ranked(trials, SweepGoal.MINIMIZE)
    assert not best or best[0].number not in stopped
    for end in range(len(trials)):
        sooner = {one.number for one in to_stop(trials[:end], RULE, SweepGoal.MINIMIZE)}
        assert sooner == {number for number in stopped if number < end}


def test_trial_repeating_a_passed_rung_is_not_judged_again() -> None:
    trials = arrivals([0.5, 0.45, 0.2])
    trials = [replace(one, rungs=first_reports(one, RULE)) for one in trials]
    assert to_stop(trials, RULE, SweepGoal.MINIMIZE) == ()
    trials[0] = replace(trials[0], points=(TrialPoint(1, 0.5, at=9.0),))
    assert to_stop(trials, RULE, SweepGoal.MINIMIZE) == ()
    assert first_reports(trials[0], RULE) == (TrialPoint(1, 0.5, at=0.0),)
    late = SweepTrial(3, {}, TrialState.OPEN, (TrialPoint(1, 0.47, at=8.0),))
    assert to_stop([*trials, late], RULE, SweepGoal.MINIMIZE) == (late,), "0.5 came before it"


@given(st.lists(st.tuples(figures, figures), min_size=1, max_size=40), st.randoms())
def test_repeated_steps_after_pauses_change_no_decision(
    values: list[tuple[float, float]], drawing: random.Random
) -> None:
    undisturbed = arrivals([first for first, _ in values])
    wanted = {one.number for one in to_stop(undisturbed, RULE, SweepGoal.MINIMIZE)}
    trials, stopped = list[SweepTrial](), set[int]()
    for arrived, (_, again) in zip(undisturbed, values, strict=True):
        trials.append(arrived)
        stopped |= {one.number for one in to_stop(trials, RULE, SweepGoal.MINIMIZE)}
        trials = [replace(one, rungs=first_reports(one, RULE)) for one in trials]
        paused = drawing.randrange(len(trials))
        repeated = (TrialPoint(1, again, at=arrived.number + 0.5),)
        trials[paused] = replace(trials[paused], points=repeated)
    assert stopped == wanted


@given(st.lists(st.floats(0, 1), min_size=3, max_size=40), st.randoms())
def test_large_and_small_values_are_judged_alike(
    values: list[float], drawing: random.Random
) -> None:
    rising, falling = arrivals(values), arrivals([-value for value in values])
    one = to_stop(rising, RULE, SweepGoal.MINIMIZE)
    other = to_stop(falling, RULE, SweepGoal.MAXIMIZE)
    assert [it.number for it in one] == [it.number for it in other]


def test_remaining_work_follows_rungs() -> None:
    # A third of the trials continue from 10 to 30, a ninth from 30 to 90.
    wanted = (10 + 20 / 3 + 60 / 9) / 90
    assert share_of_work(EarlyStopping(10, 3), 90) == pytest.approx(wanted)
    assert share_of_work(EarlyStopping(100, 3), 90) == 1


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_all_trials_run_once_for_any_outcome(seed: int, at_once: int) -> None:
    plan = SweepPlan(
        {"lr": ValueRange(1e-5, 1e-1, log=True)},
        method=SweepMethod.RANDOM,
        metric="loss",
        trials=30,
        max_concurrent=at_once,
        early_stopping=EarlyStopping(2, 3),
    )
    drawing, trials, at = random.Random(seed), list[SweepTrial](), 0.0
    while not (acts := next_acts(plan, trials)).over:
        trials += _begun(acts, len(trials))
        trials = [_stopped(one, acts) for one in trials]
        assert sum(one.state is TrialState.OPEN for one in trials) <= at_once
        open_now = [one for one in trials if one.state is TrialState.OPEN]
        if open_now:
            at += 1.0
            moved = drawing.choice(open_now)
            trials[moved.number] = _moved(moved, drawing, at)
    assert [one.number for one in trials] == list(range(30))
    assert acts.enough is EnoughReason.ALL_TRIED


def _begun(acts: SweepActs, number: int) -> list[SweepTrial]:
    return [
        SweepTrial(number + place, values, TrialState.OPEN)
        for place, values in enumerate(acts.begin)
    ]


def _stopped(trial: SweepTrial, acts: SweepActs) -> SweepTrial:
    stops = trial.number in acts.stop
    return replace(trial, state=TrialState.STOPPED_EARLY) if stops else trial


def _moved(trial: SweepTrial, drawing: random.Random, at: float) -> SweepTrial:
    """Return the trial after it reports a step, falls back after a pause, or ends."""
    kind = drawing.random()
    if kind < 0.1:
        ends = (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED)
        return replace(trial, state=drawing.choice(ends))
    if kind < 0.3:
        return replace(trial, points=trial.points[: len(trial.points) // 2])
    step = len(trial.points) + 1
    done = replace(trial, points=(*trial.points, TrialPoint(step, drawing.random(), at)))
    return replace(done, state=TrialState.DONE) if step == 20 else done


def trials_of(*values: float | None) -> list[SweepTrial]:
    return [
        SweepTrial(
            number,
            {"a": number},
            TrialState.FAILED if value is None else TrialState.DONE,
            () if value is None else (TrialPoint(1, value, 0.0),),
            gpu_hours=1.0,
        )
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("change", "trials", "reason"),
    [
        ({"patience": 2}, trials_of(0.5, 0.3, 0.4, 0.4), EnoughReason.PATIENCE),
        ({"gpu_hours": 2.0}, trials_of(0.5, 0.4), EnoughReason.GPU_HOURS),
        ({"good_enough": 0.1}, trials_of(0.5, 0.1), EnoughReason.GOOD_ENOUGH),
        ({}, trials_of(*[None] * 5), EnoughReason.FAILURES),
        ({"trials": 3}, trials_of(0.1, 0.2, 0.3), EnoughReason.ALL_TRIED),
    ],
)
def test_no_trial_starts_after_goal_is_reached(
    change: dict[str, float], trials: list[SweepTrial], reason: EnoughReason
) -> None:
    plan = SweepPlan({"a": ListedValues(list(range(9)))}, metric="loss", **change)  # type: ignore[arg-type]
    acts = next_acts(plan, trials)
    assert (acts.begin, acts.enough, acts.over) == ((), reason, True)
    assert next_acts(plan, trials[:-1]).begin, "it was not enough before the last one"


def test_reached_goal_stops_running_trials() -> None:
    plan = SweepPlan({"a": ListedValues([0, 1, 2])}, metric="loss", good_enough=0.1)
    open_now = [replace(one, state=TrialState.OPEN) for one in trials_of(0.5, 0.05, 0.3)]
    assert next_acts(plan, open_now).stop == (0, 2)
