"""Early stopping of trials: asynchronous successive halving, in its stopping form.

Li et al., *A System for Massively Parallel Hyperparameter Tuning* (MLSys 2020), section 3.2. A
trial is judged once at each rung, on arrival, against the trials that arrived there before it. So
no trial waits for another, and later arrivals do not change a decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

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
    return tuple(
        trial
        for trial in trials
        if trial.state is TrialState.OPEN
        and any(_falls(trial, trials, step, rule, goal) for step in _rungs(trial, rule))
    )


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


def _rungs(trial: SweepTrial, rule: EarlyStopping) -> Iterator[int]:
    """Yield the rungs that a trial has reached."""
    last = trial.points[-1].step if trial.points else -1
    step = rule.first
    while step <= last:
        yield step
        step *= rule.factor


def _falls(
    trial: SweepTrial,
    trials: Iterable[SweepTrial],
    step: int,
    rule: EarlyStopping,
    goal: SweepGoal,
) -> bool:
    own = _at(trial, step)
    if own is None:
        return False
    arrivals = [
        (point, other.number) for other in trials if (point := _at(other, step)) is not None
    ]
    before = [point for point, number in arrivals if (point.at, number) <= (own.at, trial.number)]
    if len(before) < rule.factor:
        return False
    ahead = sum(_beats(point.value, own.value, goal) for point in before)
    return ahead >= len(before) // rule.factor


def _at(trial: SweepTrial, step: int) -> TrialPoint | None:
    """Return the report of a trial when it reached a step, or None before that."""
    return next((point for point in trial.points if point.step >= step), None)


def _beats(one: float, other: float, goal: SweepGoal) -> bool:
    if not math.isfinite(other):
        return math.isfinite(one)
    return math.isfinite(one) and is_better(one, other, goal)
