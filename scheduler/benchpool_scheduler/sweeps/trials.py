"""Trials: single runs of a sweep, with their reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchpool_scheduler.contract.sweeps import Scalar, SweepGoal


class TrialState(StrEnum):
    """State of a trial. A paused trial is open and is resumed as the same trial."""

    OPEN = "open"
    DONE = "done"
    STOPPED_EARLY = "stopped-early"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class TrialPoint:
    """Report of a trial: step, value, and its time in seconds."""

    step: int
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class SweepTrial:
    """One run of a sweep.

    Attributes:
        number: From 0, in the order in which they began.
        points: Its reports of the sweep's metric, in the order of steps, each step once.
        rungs: Its first report at each rung at which it was judged; ``step`` is the rung.
        gpu_hours: GPU-hours used so far.
    """

    number: int
    parameters: Mapping[str, Scalar]
    state: TrialState
    points: Sequence[TrialPoint] = ()
    gpu_hours: float = 0.0
    rungs: Sequence[TrialPoint] = ()

    @property
    def value(self) -> float | None:
        """The last value that is a number; None if there is none."""
        return next((one.value for one in reversed(self.points) if math.isfinite(one.value)), None)


def is_better(one: float, other: float, goal: SweepGoal) -> bool:
    """Return whether a value is better than another.

    >>> is_better(0.1, 0.2, SweepGoal.MINIMIZE)
    True
    """
    return one < other if goal is SweepGoal.MINIMIZE else one > other


def ranked(trials: Iterable[SweepTrial], goal: SweepGoal) -> list[SweepTrial]:
    """Return the trials with a value, the best first, the earlier first of equal ones.

    Trials that were stopped early count with their last value, behind the trials that continued.
    """
    sign = 1 if goal is SweepGoal.MINIMIZE else -1
    scored = [(trial, value) for trial in trials if (value := trial.value) is not None]
    scored.sort(
        key=lambda row: (row[0].state is TrialState.STOPPED_EARLY, sign * row[1], row[0].number)
    )
    return [trial for trial, _ in scored]
