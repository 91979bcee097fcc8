"""Disturbance caused by a set of victims (R18).

Equally fair sets are compared by lost GPU-seconds, then by the number of stopped jobs, then by the
number of users who lose workers. The smaller is the better.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.preemption.candidates import VictimCandidates

DIGITS = 3
"""Digits to which lost GPU-seconds are compared, since the order of a sum changes its last
digits.
"""


class Disturbance(NamedTuple):
    """Joint cost of some units.

    Attributes:
        lost_gpu_s: Unsaved progress and restarts, in GPU-seconds.
        jobs: Number of jobs that stop.
        people: Number of users who lose a worker.
    """

    lost_gpu_s: float
    jobs: int
    people: int


def disturbance_of(units: Iterable[PreemptionUnit], candidates: VictimCandidates) -> Disturbance:
    """Return the cost of taking these units. Starts of this pass cost nothing."""
    lost, jobs, people = 0.0, 0, set[str]()
    for unit in units:
        if not unit.fresh:
            lost += candidates.lost(unit)
            jobs += unit.is_gang
            people.add(unit.info.user)
    return Disturbance(round(lost, DIGITS), jobs, len(people))
