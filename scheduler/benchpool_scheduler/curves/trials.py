"""Trials of a sweep as runs for comparison. Pure."""

from __future__ import annotations

from benchpool_scheduler.contract import Job
from benchpool_scheduler.contract.parameters import ParameterValue
from benchpool_scheduler.contract.sweeps import Sweep, SweepGoal
from benchpool_scheduler.curves.figures import Goal
from benchpool_scheduler.curves.parameters import argument_text
from benchpool_scheduler.phrases.sparks import metric

LONGEST_LABEL = 48
LONGEST_NAME = 20


def best_of(sweep: Sweep, most: int) -> list[str]:
    """Return the job IDs of the best trials that have a job; trials without a value come last."""
    return [it.job for it in sweep.trials if it.job is not None][: max(most, 0)]


def goals_of(sweep: Sweep) -> dict[str, Goal]:
    """Return the goal of the metric that the sweep optimizes."""
    metric = sweep.plan.metric
    if metric is None:
        return {}
    return {metric: "min" if sweep.plan.goal is SweepGoal.MINIMIZE else "max"}


def label_of(job: Job) -> str:
    """Return the label of a job in a comparison; of a trial its number and its values."""
    if job.trial is None:
        return f"{job.id[:8]} {job.name[:LONGEST_NAME]}"
    values = ", ".join(f"{name} {_value(it)}" for name, it in job.parameters.items())
    text = f"{job.id[:8]} #{job.trial.trial} {values}"
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _value(value: ParameterValue) -> str:
    return metric(value) if isinstance(value, float) else argument_text(value)
