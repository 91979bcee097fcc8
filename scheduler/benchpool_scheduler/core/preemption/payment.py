"""Payment for one claimant: units are taken until it fits, and none beyond that (R17, R18).

Everything is tried on the state. Taken units can be returned together (``undo``), or one by one if
they are not needed (*reprieve*). Sparing a unit leaves the paying side with more, and so never
makes another unit unlawful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.preemption.disturbance import Disturbance, disturbance_of
from benchpool_scheduler.core.preemption.entitlement import Entitlement, Victim
from benchpool_scheduler.core.preemption.smallest_set import Group, smallest_set, stays
from benchpool_scheduler.core.preemption.victim_queue import VictimQueue

MOST_TRIED = 5
"""Limit on the sets tried in one way, since a victim of each could return (R16)."""


class Payment:
    """Units taken so that a number of a job's workers have places.

    Attributes:
        victims: Units taken so far.
    """

    def __init__(self, entitled: Entitlement, workers: int) -> None:
        self.entitled = entitled
        self.state = state = entitled.state
        self.candidates = entitled.candidates
        self.info = entitled.info
        self.workers = workers
        self.victims: list[Victim] = []
        self._before = state.changes.savepoint()

    def fits(self) -> bool:
        """Return whether the claimant could start once leaving jobs are gone."""
        state, wanted = self.state, self.entitled.wanted
        return state.ledger.over_limit(self.info, wanted, releasing=True) is None and fits(
            self.info, self.workers, state.capacity, releasing=True
        )

    @property
    def disturbance(self) -> Disturbance:
        """Return the cost of the victims (R18)."""
        return disturbance_of((victim.unit for victim in self.victims), self.candidates)

    @property
    def ground(self) -> int:
        """Return the last ground that the victims need (R15)."""
        return max((victim.ground for victim in self.victims), default=0)

    @property
    def projects(self) -> set[int]:
        """Return the projects that pay."""
        return {victim.unit.info.branch.index for victim in self.victims}

    def undo(self) -> None:
        """Return all taken units."""
        self.victims = []
        self.state.changes.rollback(self._before)

    def repeat(self, victims: list[Victim]) -> None:
        """Take exactly these units, which were lawful victims before."""
        self.undo()
        for victim in victims:
            self.state.changes.release(victim.unit)
        self.victims = victims

    def pay(self, queue: VictimQueue) -> bool:
        """Take units until the claimant fits. Change nothing and return False if it never does.

        Victims that could return are left out, and another set is tried (R16).
        """
        self.entitled.left_out = frozenset()
        for _ in range(MOST_TRIED):
            if smallest_set(self.state, self._next(queue), self.fits, self._reprieved) is None:
                break
            if (back := self.comes_back()) is None:
                return True
            self.undo()
            self.entitled.left_out |= {back}
            queue = queue.again()
        self.undo()
        return False

    def comes_back(self) -> PreemptionUnit | None:
        """Return the last paying victim that could return at once, or None (R16).

        Of a stopped job only its smallest gang is checked, since no other unit of it can return
        first.
        """
        stopped = {victim.unit.info.age for victim in self.victims if victim.unit.is_gang}
        for victim in reversed(self.victims):
            unit = victim.unit
            asked = unit.is_gang or unit.info.age not in stopped
            if asked and self.entitled.comes_back(victim):
                return unit
        return None

    def take(self, victim: Victim) -> None:
        """Take a unit. With the smallest gang of a job, take all of its units."""
        for unit in self._with_surplus(victim):
            self.state.changes.release(unit)

    def _next(self, queue: VictimQueue) -> Iterator[Group]:
        """Yield the groups that pay, in order."""
        while (victim := queue.next()) is not None:
            yield self._with_surplus(victim)
            queue.taken(victim)

    def _with_surplus(self, victim: Victim) -> Group:
        """Add a unit to the victims. With the smallest gang of a job, add all of its units."""
        self.victims.append(victim)
        if not victim.unit.is_gang:
            return (victim.unit,)
        surplus = self.candidates.surplus_of(victim.unit)
        self.victims += [Victim(unit, victim.ground, victim.level) for unit in surplus]
        return (victim.unit, *surplus)

    # ------------------------------------------------------------------ reprieve

    def _reprieved(self, gone: list[Group]) -> list[Group]:
        """Spare every unit that is not needed, the last to pay first (R18).

        The very last unit is needed: with all others gone the claimant did not fit.
        """
        if len(self.victims) < 2:
            return []
        return self.reprieve(self.victims[::-1], needed=gone[-1][0])

    def reprieve(
        self, order: Sequence[Victim], *, needed: PreemptionUnit | None = None
    ) -> list[Group]:
        """Spare every unit that is not needed, whole jobs before surplus. Return the spared groups.

        Args:
            order: The victims, in the order in which they are spared.
            needed: A unit that is known to be needed.
        """
        stopped = {victim.unit.info.age for victim in order if victim.unit.is_gang}
        grounds = Counter((victim.ground, victim.level) for victim in order)
        gangs = [victim for victim in order if victim.unit.is_gang]
        surplus = [victim for victim in order if not victim.unit.is_gang]
        stay: dict[PreemptionUnit, Group] = {}
        for victim in (*gangs, *surplus):
            unit, ground = victim.unit, (victim.ground, victim.level)
            if unit is needed or (not unit.is_gang and unit.info.age in stopped):
                continue  # surplus goes with its whole job
            grounds[ground] -= 1
            if stays(self.state, (unit,), partial(self._enough_without, unit, grounds)):
                stopped.discard(unit.info.age)
                stay[unit] = (unit,)
            else:
                grounds[ground] += 1
        self.victims = [victim for victim in self.victims if victim.unit not in stay]
        return [*stay.values()]

    def _enough_without(self, unit: PreemptionUnit, grounds: Counter[tuple[int, int]]) -> bool:
        return self.fits() and self._still_lawful(unit, grounds)

    def _still_lawful(self, spared: PreemptionUnit, grounds: Counter[tuple[int, int]]) -> bool:
        """Return whether the other victims stay lawful if this one is spared.

        Only the claimant's own path matters: its project must stay entitled.
        """
        if self.info.branch.path[0] != spared.info.branch.path[0]:
            return True
        return all(
            self.entitled.holds(ground, level) for (ground, level), n in grounds.items() if n
        )
