"""What a set of victims costs the people whose work gives way (R18).

Equally fair sets are compared by the GPU seconds they lose, then by how many jobs stop, then by how
many people lose anything. The smaller is the better.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.preemption.candidates import VictimCandidates

DIGITS = 3
"""GPU seconds are compared to so many digits: the same sum, added up otherwise, stays the same."""


class Disturbance(NamedTuple):
    """What some units cost together.

    Attributes:
        lost_gpu_s: Unsaved progress and restarts, GPU seconds.
        jobs: Jobs that stop. ``people``: those who lose any worker.
    """

    lost_gpu_s: float
    jobs: int
    people: int


def disturbance_of(units: Iterable[PreemptionUnit], candidates: VictimCandidates) -> Disturbance:
    """Return what it costs to take these units; what this very pass started costs nobody."""
    lost, jobs, people = 0.0, 0, set[str]()
    for unit in units:
        if not unit.fresh:
            lost += candidates.lost(unit)
            jobs += unit.is_gang
            people.add(unit.info.user)
    return Disturbance(round(lost, DIGITS), jobs, len(people))
