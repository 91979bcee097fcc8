"""Cost of a sweep, estimated before it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchpool_scheduler.contract.sweeps import SweepPlan
from benchpool_scheduler.sweeps.halving import share_of_work
from benchpool_scheduler.sweeps.proposals import size


@dataclass(frozen=True, slots=True)
class SweepCost:
    """GPU-hours of all trials, and hours until the last of them ends.

    Attributes:
        complete_gpu_hours: GPU-hours if no trial is stopped early.
    """

    gpu_hours: float
    hours: float
    complete_gpu_hours: float


def cost(
    plan: SweepPlan, trial_hours: float, trial_steps: int | None, gpus: int, at_once: int
) -> SweepCost:
    """Return the maximum cost of a sweep, less the expected savings of early stopping.

    Args:
        trial_hours: Hours of a trial that runs to its end, which has ``trial_steps``.
        gpus: GPUs of a trial. ``at_once``: number of trials that run at a time.

    >>> from benchpool_scheduler.contract.sweeps import ListedValues
    >>> cost(SweepPlan({"lr": ListedValues([1, 2, 3])}), 2.0, None, gpus=4, at_once=2)
    SweepCost(gpu_hours=24.0, hours=4.0, complete_gpu_hours=24.0)
    """
    many, share = size(plan), 1.0
    if plan.early_stopping is not None and trial_steps is not None:
        share = share_of_work(plan.early_stopping, trial_steps)
    worked = many * trial_hours * share
    rounds = math.ceil(many / at_once)
    hours = rounds * trial_hours if share == 1.0 else max(trial_hours, worked / at_once)
    spent, complete = worked * gpus, many * trial_hours * gpus
    if plan.gpu_hours is not None and spent > plan.gpu_hours:
        hours, spent = hours * plan.gpu_hours / spent, plan.gpu_hours
    return SweepCost(spent, hours, min(complete, plan.gpu_hours or math.inf))
