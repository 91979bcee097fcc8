"""Next step of a sweep: the trials to begin, the trials to stop early, and the reason to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchpool_scheduler.contract.sweeps import Scalar, SweepPlan
from benchpool_scheduler.phrases import count, gpu_hours
from benchpool_scheduler.sweeps import proposals
from benchpool_scheduler.sweeps.halving import to_stop
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialState, is_better, ranked


class EnoughReason(StrEnum):
    """Reason why no further trial begins."""

    ALL_TRIED = "all-tried"
    STOPPED = "stopped"
    GPU_HOURS = "gpu-hours"
    GOOD_ENOUGH = "good-enough"
    PATIENCE = "patience"
    FAILURES = "failures"


FAILURES_IN_A_ROW = 5
"""Number of failed trials in a row, from the first on, after which no further trial begins."""


@dataclass(frozen=True, slots=True)
class SweepActs:
    """Actions for a sweep.

    Attributes:
        begin: The values of each trial to begin, numbered on from the existing ones.
        stop: Numbers of open trials to stop early.
        enough: Why no further trial begins, None while more will begin.
        over: No trial is open, and none will begin.
    """

    begin: tuple[Mapping[str, Scalar], ...]
    stop: tuple[int, ...]
    enough: EnoughReason | None
    over: bool


def next_acts(plan: SweepPlan, trials: Sequence[SweepTrial], *, stopped: bool = False) -> SweepActs:
    """Return the next actions of a sweep.

    Args:
        trials: All so far, in the order of their numbers.
        stopped: Its owner ended the sweep.

    Errors: those of ``proposals.propose``.
    """
    open_now = [one for one in trials if one.state is TrialState.OPEN]
    enough = enough_reason(plan, trials, stopped=stopped)
    stop = _stopped_early(plan, trials, open_now, enough)
    begin: list[Mapping[str, Scalar]] = []
    known = list(trials)
    while enough is None and len(open_now) + len(begin) < plan.max_concurrent:
        values = proposals.propose(plan, known)
        if values is None:
            enough = EnoughReason.ALL_TRIED
        else:
            begin.append(values)
            known.append(SweepTrial(len(known), values, TrialState.OPEN))
    return SweepActs(tuple(begin), stop, enough, not open_now and not begin)


def enough_reason(
    plan: SweepPlan, trials: Sequence[SweepTrial], *, stopped: bool = False
) -> EnoughReason | None:
    """Return why no further trial begins, or None while more will begin."""
    return EnoughReason.STOPPED if stopped else _enough(plan, trials)


def enough_words(reason: EnoughReason, plan: SweepPlan) -> str:
    """Return why no further trial begins, as a clause.

    >>> enough_words(EnoughReason.PATIENCE, SweepPlan({}, patience=8))
    'the last 8 trials were no better than the best before'
    """
    return {
        EnoughReason.ALL_TRIED: f"all its {'tasks' if plan.array else 'trials'} have begun",
        EnoughReason.STOPPED: "its owner stopped it",
        EnoughReason.GPU_HOURS: f"its budget of {gpu_hours(plan.gpu_hours or 0)} GPU-hours is used",
        EnoughReason.GOOD_ENOUGH: f"a trial reached {plan.good_enough}",
        EnoughReason.PATIENCE: (
            f"the last {count(plan.patience or 0, 'trial')} were no better than the best before"
        ),
        EnoughReason.FAILURES: f"its first {FAILURES_IN_A_ROW} trials failed",
    }[reason]


def _enough(plan: SweepPlan, trials: Sequence[SweepTrial]) -> EnoughReason | None:
    if plan.good_enough is not None and _reached(plan, trials):
        return EnoughReason.GOOD_ENOUGH
    if plan.gpu_hours is not None and sum(one.gpu_hours for one in trials) >= plan.gpu_hours:
        return EnoughReason.GPU_HOURS
    if plan.patience is not None and _since_the_best(plan, trials) >= plan.patience:
        return EnoughReason.PATIENCE
    ended = [one for one in trials if one.state is not TrialState.OPEN]
    ended = [] if plan.array else ended  # the tasks of an array are independent of each other
    if len(ended) >= FAILURES_IN_A_ROW and all(one.state is TrialState.FAILED for one in ended):
        return EnoughReason.FAILURES
    return EnoughReason.ALL_TRIED if len(trials) >= proposals.size(plan) else None


def _reached(plan: SweepPlan, trials: Sequence[SweepTrial]) -> bool:
    wanted = plan.good_enough
    values = (one.value for one in trials)
    return wanted is not None and any(
        value is not None and not is_better(wanted, value, plan.goal) for value in values
    )


def _since_the_best(plan: SweepPlan, trials: Sequence[SweepTrial]) -> int:
    """Return the number of trials that ended after the best one was begun."""
    best = ranked(trials, plan.goal)[:1]
    ended = [one for one in trials if one.state is not TrialState.OPEN]
    return sum(one.number > best[0].number for one in ended) if best else 0


def _stopped_early(
    plan: SweepPlan,
    trials: Sequence[SweepTrial],
    open_now: Sequence[SweepTrial],
    enough: EnoughReason | None,
) -> tuple[int, ...]:
    if enough is EnoughReason.GOOD_ENOUGH:
        best = ranked(trials, plan.goal)[0]
        return tuple(one.number for one in open_now if one is not best)
    if plan.early_stopping is None:
        return ()
    return tuple(one.number for one in to_stop(trials, plan.early_stopping, plan.goal))
