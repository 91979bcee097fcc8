"""Who gives way to one claimant: units are let go until it fits, and nobody beyond that (R17, R18).

Everything is tried out on the state. What is let go can be taken back as a whole (``undo``), or
unit by unit where it turns out not to be needed (*reprieve*).

Sparing a unit leaves the paying side with more, so it never makes another unit unlawful.
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
"""At most so many sets are looked for in one way: of each a victim could come back (R16)."""


class Payment:
    """What others give so that a number of a job's workers have places.

    Attributes:
        victims: What was let go so far.
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
        """Tell whether the claimant could start once the leaving are gone."""
        state, wanted = self.state, self.entitled.wanted
        return state.ledger.over_limit(self.info, wanted, releasing=True) is None and fits(
            self.info, self.workers, state.capacity, releasing=True
        )

    @property
    def disturbance(self) -> Disturbance:
        """Return what it costs (R18)."""
        return disturbance_of((victim.unit for victim in self.victims), self.candidates)

    @property
    def ground(self) -> int:
        """Return the last of the grounds that it needs (R15)."""
        return max((victim.ground for victim in self.victims), default=0)

    @property
    def projects(self) -> set[int]:
        """Return the projects that give something."""
        return {victim.unit.info.branch.index for victim in self.victims}

    def undo(self) -> None:
        """Everybody holds again."""
        self.victims = []
        self.state.changes.rollback(self._before)

    def repeat(self, victims: list[Victim]) -> None:
        """Let go exactly of these, who were lawful victims before."""
        self.undo()
        for victim in victims:
            self.state.changes.release(victim.unit)
        self.victims = victims

    def pay(self, queue: VictimQueue) -> bool:
        """Let units go until the claimant fits; without that, nothing has happened.

        Who could come back is left out, and another set is looked for (R16).
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
        """Return a victim, the last to pay first, that could come back at once (R16).

        Of a job that stops only its smallest gang is asked: nothing else of it can come first.
        """
        stopped = {victim.unit.info.age for victim in self.victims if victim.unit.is_gang}
        for victim in reversed(self.victims):
            unit = victim.unit
            asked = unit.is_gang or unit.info.age not in stopped
            if asked and self.entitled.comes_back(victim):
                return unit
        return None

    def take(self, victim: Victim) -> None:
        """Let a unit go, and with the smallest gang of a job all that it has."""
        for unit in self._with_surplus(victim):
            self.state.changes.release(unit)

    def _next(self, queue: VictimQueue) -> Iterator[Group]:
        """Yield who pays next."""
        while (victim := queue.next()) is not None:
            yield self._with_surplus(victim)
            queue.taken(victim)

    def _with_surplus(self, victim: Victim) -> Group:
        """Count a unit as a victim, and with the smallest gang of a job all that it has."""
        self.victims.append(victim)
        if not victim.unit.is_gang:
            return (victim.unit,)
        surplus = self.candidates.surplus_of(victim.unit)
        self.victims += [Victim(unit, victim.ground, victim.level) for unit in surplus]
        return (victim.unit, *surplus)

    # ------------------------------------------------------------------ reprieve

    def _reprieved(self, gone: list[Group]) -> list[Group]:
        """Let every unit stay that is not needed, the last to pay first (R18).

        The very last is needed: with all others gone the claimant did not fit.
        """
        if len(self.victims) < 2:
            return []
        return self.reprieve(self.victims[::-1], needed=gone[-1][0])

    def reprieve(
        self, order: Sequence[Victim], *, needed: PreemptionUnit | None = None
    ) -> list[Group]:
        """Let every unit stay that is not needed, whole jobs before surplus; return those.

        Args:
            order: The victims, the first to be spared first.
            needed: One that is known to be needed.
        """
        stopped = {victim.unit.info.age for victim in order if victim.unit.is_gang}
        grounds = Counter((victim.ground, victim.level) for victim in order)
        gangs = [victim for victim in order if victim.unit.is_gang]
        surplus = [victim for victim in order if not victim.unit.is_gang]
        stay: dict[PreemptionUnit, Group] = {}
        for victim in (*gangs, *surplus):
            unit, ground = victim.unit, (victim.ground, victim.level)
            if unit is needed or (not unit.is_gang and unit.info.age in stopped):
                continue  # where the whole job goes, its surplus goes with it
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
        """Tell whether the others may still be taken when this one is spared.

        Only what counts on the claimant's own path matters: its project must stay entitled.
        """
        if self.info.branch.path[0] != spared.info.branch.path[0]:
            return True
        return all(
            self.entitled.holds(ground, level) for (ground, level), n in grounds.items() if n
        )
