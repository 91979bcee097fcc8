"""Exchange of victims where fewer would suffice, or where other victims lose less (R18).

Units pay in order, one after the other, so that no unit of the resulting set can be spared. Another
set may still be better: one large job instead of two small ones. Here one more job of a paying
project is taken first, then as few of the others as are still needed, the largest first. The new
set is kept if it loses less, or loses as much and stops fewer jobs or affects fewer users. Jobs are
exchanged only for jobs of their own project, so that the division between projects is unchanged. A
job of higher rank is taken only if that loses less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.preemption.disturbance import DIGITS, Disturbance
from benchpool_scheduler.core.preemption.entitlement import Victim
from benchpool_scheduler.core.preemption.payment import Payment

MOST_TRIED = 64
"""Limit on exchanges tried for one claim."""

FEW = 16
"""Most victims with which exchanges are tried."""


@dataclass(frozen=True, slots=True)
class _Found:
    """An allowed and sufficient set of victims, and its cost."""

    victims: list[Victim]
    cost: Disturbance

    @property
    def ground(self) -> int:
        """Return the last ground that it needs."""
        return max(victim.ground for victim in self.victims)


def exchange(payment: Payment) -> None:
    """Exchange victims while that improves the set."""
    best, left = _Found(payment.victims, payment.disturbance), MOST_TRIED
    while left and 1 < len(best.victims) <= FEW:
        payment.undo()
        tried = list(islice(_instead(payment, best.victims), left))
        left -= len(tried)
        found = [better for unit in tried if (better := _with(payment, unit, best)) is not None]
        if not found:
            break
        best = min(found, key=lambda one: one.cost)
    if best.victims is not payment.victims:
        payment.repeat(best.victims)


def _instead(payment: Payment, victims: list[Victim]) -> Iterator[PreemptionUnit]:
    """Yield the jobs that might pay instead of victims of their own project."""
    gone = dict.fromkeys(victim.unit for victim in victims)
    people = {unit.info.user for unit in gone}
    nodes = dict.fromkeys(worker.node for unit in gone for worker in unit.workers)
    candidates = payment.candidates
    beside = [unit for name in nodes for unit in candidates.on_node(name) if unit.is_gang]
    for index in sorted({unit.info.branch.index for unit in gone}):
        own = [unit for unit in gone if unit.info.branch.index == index]
        near = (unit for unit in beside if unit.info.branch.index == index)
        found = {*candidates.cheapest(index, gone), *near}.difference(gone)
        for unit in sorted(found, key=candidates.order):
            if _could_do(payment, unit, own, people):
                yield unit


def _could_do(
    payment: Payment, unit: PreemptionUnit, own: list[PreemptionUnit], people: set[str]
) -> bool:
    """Return whether taking a unit may be better. This bound avoids most useless trials."""
    lost = payment.candidates.lost
    loses = lost(unit)
    if round(loses - sum(map(lost, own)), DIGITS) > 0:
        return False
    if unit.info.rank > max(one.info.rank for one in own):
        return False
    larger = any(one.amounts.gpus < unit.amounts.gpus for one in own)
    fewer_people = len(people) > 1 and unit.info.user in people
    return larger or fewer_people or any(lost(one) > loses for one in own)


def _with(payment: Payment, unit: PreemptionUnit, best: _Found) -> _Found | None:
    """Return a better set with the unit in it, or None. The state is unchanged."""
    project = unit.info.branch.index
    others = [v for v in best.victims if v.unit.info.branch.index != project]
    own = [v for v in best.victims if v.unit.info.branch.index == project]
    found = None
    if _pay(payment, unit, others, own):
        smallest_first = payment.victims[::-1]
        smallest_first.sort(key=lambda victim: victim.unit.amounts.gpus)
        payment.reprieve(smallest_first)
        found = _Found(payment.victims, payment.disturbance)
        fair = _as_fair(unit, found, best, others) and payment.comes_back() is None
        if found.cost >= best.cost or not fair:
            found = None
    payment.undo()
    return found


def _pay(payment: Payment, unit: PreemptionUnit, others: list[Victim], own: list[Victim]) -> bool:
    """Take the unit and the other projects' victims, and as few of its own project's as needed."""
    for victim in others:
        if not _take(payment, victim.unit):
            return False
    if not _take(payment, unit):
        return False
    nodes = {worker.node for worker in unit.workers}
    for victim in sorted(own, key=lambda v: _turn(v.unit, unit)):
        if payment.fits():
            return True
        here = payment.workers > 1 or any(w.node in nodes for w in victim.unit.workers)
        if here:
            _take(payment, victim.unit)
    return payment.fits()


def _take(payment: Payment, unit: PreemptionUnit) -> bool:
    """Take the unit if that is allowed now (R15). Return whether it is taken."""
    if unit.claimed:
        return True
    victim = payment.entitled.lawful(unit)
    if victim is not None:
        payment.take(victim)
    return victim is not None


def _turn(unit: PreemptionUnit, beside: PreemptionUnit) -> tuple[bool, bool, int]:
    """Return the sort key of a victim beside a unit: surplus first, then the largest.

    An equal job of another user goes last, since the unit can replace it.
    """
    equal = unit.amounts.gpus == beside.amounts.gpus
    return unit.is_gang, equal and unit.info.user != beside.info.user, -unit.amounts.gpus


def _as_fair(unit: PreemptionUnit, found: _Found, best: _Found, others: list[Victim]) -> bool:
    """Return whether one set is as fair as another that differs by a unit."""
    taken = {victim.unit for victim in found.victims}
    if not taken.issuperset(victim.unit for victim in others):
        return False
    if any(victim.ground > best.ground for victim in found.victims):
        return False
    spared = [victim.unit for victim in best.victims if victim.unit not in taken]
    cheaper = found.cost.lost_gpu_s < best.cost.lost_gpu_s
    return cheaper or all(unit.info.rank <= one.info.rank for one in spared)
