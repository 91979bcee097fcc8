"""Sentences about a sweep and its trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from benchpool_scheduler.contract.sweeps import SweepGoal, SweepPlan
from benchpool_scheduler.phrases import count, duration, gpu_hours
from benchpool_scheduler.sweeps.costs import SweepCost
from benchpool_scheduler.sweeps.decisions import EnoughReason, enough_words
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialState, ranked

ENDS = {
    TrialState.DONE: "done",
    TrialState.OPEN: "under way",
    TrialState.STOPPED_EARLY: "stopped early",
    TrialState.FAILED: "failed",
    TrialState.CANCELLED: "cancelled",
}


def why_stopped(plan: SweepPlan, trials: Sequence[SweepTrial], number: int, sweep: str) -> str:
    """Return why a trial is stopped early.

    >>> from benchpool_scheduler.contract.sweeps import EarlyStopping
    >>> from benchpool_scheduler.sweeps.trials import TrialPoint
    >>> trial = SweepTrial(3, {}, TrialState.OPEN, (TrialPoint(10, 0.9, 0.0),))
    >>> plan = SweepPlan({}, metric="loss", early_stopping=EarlyStopping(10))
    >>> why_stopped(plan, [trial] * 4, 3, "rates")
    'Stopped early by sweep rates: with loss 0.9 at step 10 it is not among the best third.'
    """
    trial = trials[number]
    if plan.good_enough is not None and any(one.value is not None for one in trials):
        best = ranked(trials, plan.goal)[0]
        if best is not trial and best.value is not None and _reaches(plan, best.value):
            return (
                f"Stopped early by sweep {sweep}: trial {best.number} has reached {plan.metric} "
                f"{_figure(best.value)}, which is good enough."
            )
    rule, point = plan.early_stopping, trial.points[-1]
    share = "half" if rule is not None and rule.factor == 2 else "third"
    if rule is not None and rule.factor > 3:
        share = f"1 of {rule.factor}"
    return (
        f"Stopped early by sweep {sweep}: with {plan.metric} {_figure(point.value)} at step "
        f"{point.step} it is not among the best {share}."
    )


def standing(
    plan: SweepPlan,
    trials: Sequence[SweepTrial],
    size: int,
    enough: EnoughReason | None,
) -> str:
    """Return the progress of a sweep.

    >>> standing(SweepPlan({}, metric="loss"), [SweepTrial(0, {}, TrialState.OPEN)], 6, None)
    '1 of 6 trials begun: 1 under way. No trial has reported loss yet.'
    >>> standing(SweepPlan({}, array=True), [SweepTrial(0, {}, TrialState.FAILED)], 6, None)
    '1 of 6 tasks begun: 1 failed.'
    """
    each = one_of(plan)
    counts = Counter(one.state for one in trials)
    parts = [f"{counts[state]} {name}" for state, name in ENDS.items() if counts[state]]
    begun = f"{len(trials)} of {count(size, each)} begun"
    text = f"{begun}: {', '.join(parts)}." if parts else f"{begun}."
    if enough is not None and enough is not EnoughReason.ALL_TRIED:
        text += f" No further {each} begins: {enough_words(enough, plan)}."
    if plan.metric is None:
        return text
    best = ranked(trials, plan.goal)[:1]
    if not best or best[0].value is None:
        return f"{text} No trial has reported {plan.metric} yet."
    word = "lowest" if plan.goal is SweepGoal.MINIMIZE else "highest"
    return (
        f"{text} The {word} {plan.metric} is {_figure(best[0].value)}, of trial {best[0].number}."
    )


def one_of(plan: SweepPlan) -> str:
    """Return the word for one run of a sweep or of an array.

    >>> one_of(SweepPlan({})), one_of(SweepPlan({}, array=True))
    ('trial', 'task')
    """
    return "task" if plan.array else "trial"


def forecast(
    plan: SweepPlan, trials: int, cost: SweepCost | None, at_once: int, quota: int | None
) -> str:
    """Return the expected cost of a sweep.

    Args:
        trials: Number of trials.
        at_once: Number of trials that run at a time; ``quota`` is given if it sets this number.

    >>> forecast(SweepPlan({}), 20, SweepCost(38.0, 6.0, 38.0), 4, None)
    '20 trials, about 38.0 GPU-hours; 6 h if 4 run at a time.'
    >>> forecast(SweepPlan({}), 20, SweepCost(38.0, 6.0, 38.0), 2, 4)
    '20 trials, about 38.0 GPU-hours; 6 h if 2 run at a time, limited by your quota of 4 GPUs.'
    >>> forecast(SweepPlan({}, array=True), 32, SweepCost(8.0, 2.0, 8.0), 4, None)
    '32 tasks, about 8.00 GPU-hours; 2 h if 4 run at a time.'
    >>> from benchpool_scheduler.contract.sweeps import EarlyStopping
    >>> halved = SweepPlan({}, early_stopping=EarlyStopping(10))
    >>> forecast(halved, 64, SweepCost(7.0, 2.0, 64.0), 4, None).partition(";")[0]
    '64 trials, about 7.00 GPU-hours with early stopping, 64.0 without'
    >>> forecast(SweepPlan({}), 3, None, 3, None).partition("; ")[0]
    '3 trials. How long one takes is not known'
    """
    many = count(trials, one_of(plan))
    if cost is None:
        options = "--trial-hours (trial_hours in Python, “A trial takes” in the dialog)"
        return f"{many}. How long one takes is not known; set {options} to see the cost."
    total, took = gpu_hours(cost.gpu_hours), duration(cost.hours * 3600)
    whose = "" if quota is None else f", limited by your quota of {count(quota, 'GPU')}"
    early = cost.gpu_hours < cost.complete_gpu_hours
    saved = f" with early stopping, {gpu_hours(cost.complete_gpu_hours)} without" if early else ""
    text = (
        f"{many}, about {total} GPU-hours{saved}; {took} if {at_once} "
        f"{'runs' if at_once == 1 else 'run'} at a time{whose}."
    )
    if plan.early_stopping is None or early:
        return text
    return f"{text} Early stopping may lower this; --trial-steps shows by how much."


def learned_length(plan: SweepPlan, hours: float, jobs: int) -> str:
    """Return where the length of a trial is from.

    Args:
        hours: Median of this number of similar jobs.

    >>> learned_length(SweepPlan({}), 1.5, 12)
    'Based on 12 similar jobs of yours, a trial takes 1 h 30 min.'
    """
    similar = f"{count(jobs, 'similar job')} of yours"
    return f"Based on {similar}, a {one_of(plan)} takes {duration(hours * 3600)}."


def _reaches(plan: SweepPlan, value: float) -> bool:
    wanted = plan.good_enough
    if wanted is None:
        return False
    return value <= wanted if plan.goal is SweepGoal.MINIMIZE else value >= wanted


def _figure(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "no number"
