"""Early stopping of trials: asynchronous successive halving, in its stopping form.

Li et al., *A System for Massively Parallel Hyperparameter Tuning* (MLSys 2020), section 3.2. A
trial is judged once at each rung, on arrival, against the trials that arrived there before it. So
no trial waits for another, and later arrivals do not change a decision. A trial that repeats steps
after a pause keeps its first arrivals.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from benchpool_scheduler.contract.sweeps import EarlyStopping, SweepGoal
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialPoint, TrialState, is_better


def to_stop(
    trials: Sequence[SweepTrial], rule: EarlyStopping, goal: SweepGoal
) -> tuple[SweepTrial, ...]:
    """Return the open trials that are worse than the rule allows.

    A value that is not a number is worse than all others.

    >>> def trial(number, value):
    ...     return SweepTrial(number, {}, TrialState.OPEN, (TrialPoint(10, value, at=number),))
    >>> trials = [trial(0, 0.3), trial(1, 0.2), trial(2, 0.9)]
    >>> rule = EarlyStopping(first=10, factor=3)
    >>> [one.number for one in to_stop(trials, rule, SweepGoal.MINIMIZE)]
    [2]
    """
    reached = {trial.number: first_reports(trial, rule) for trial in trials}
    return tuple(
        trial
        for trial in trials
        if trial.state is TrialState.OPEN
        and any(
            _falls(trial.number, place, reached, rule, goal)
            for place in range(len(trial.rungs), len(reached[trial.number]))
        )
    )


def first_reports(trial: SweepTrial, rule: EarlyStopping) -> tuple[TrialPoint, ...]:
    """Return the first report of a trial at each rung that it has reached, with the rung as step.

    Rungs at which it was judged keep their report.
    """
    found, points = list(trial.rungs), trial.points
    step = rule.first * rule.factor ** len(found)
    while (place := bisect_left(points, step, key=lambda it: it.step)) < len(points):
        found.append(TrialPoint(step, points[place].value, points[place].at))
        step *= rule.factor
    return tuple(found)


def share_of_work(rule: EarlyStopping, steps: int) -> float:
    """Return the share of all trials' work that is done if the rule stops as many as it can.

    Args:
        steps: Steps of a trial that runs to its end.

    >>> share_of_work(EarlyStopping(first=10, factor=2), steps=40)
    0.5
    """
    done, alive, before = 0.0, 1.0, 0
    rung = rule.first
    while rung < steps:
        done += alive * (rung - before)
        alive, before, rung = alive / rule.factor, rung, rung * rule.factor
    return (done + alive * (steps - before)) / steps


def _falls(
    number: int,
    place: int,
    reached: Mapping[int, Sequence[TrialPoint]],
    rule: EarlyStopping,
    goal: SweepGoal,
) -> bool:
    """Return whether a trial is too bad at the rung at this place, counted from 0."""
    own = reached[number][place]
    before = [
        reports[place]
        for other, reports in reached.items()
        if place < len(reports) and (reports[place].at, other) <= (own.at, number)
    ]
    if len(before) < rule.factor:
        return False
    ahead = sum(_beats(point.value, own.value, goal) for point in before)
    return ahead >= len(before) // rule.factor


def _beats(one: float, other: float, goal: SweepGoal) -> bool:
    if not math.isfinite(other):
        return math.isfinite(one)
    return math.isfinite(one) and is_better(one, other, goal)
