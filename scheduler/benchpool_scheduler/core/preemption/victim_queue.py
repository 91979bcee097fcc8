"""Queue of victims for an attempt (R15, R18).

While units go, every project beside the claimant's path only becomes less liable to pay. The next
payer is therefore found with a heap whose entries are checked again when they reach the top. Only
units of the claimant's own side can entitle it to more, and then the heap is rebuilt. Entries made
since the last unit went are used as they are. A single payer is not compared.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial

from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.model import NodeName
from benchpool_scheduler.core.preemption.entitlement import Entitlement, Victim, VictimOrder

Entry = tuple[VictimOrder, int, int, Victim]
"""Sort key, project, number of units gone when the entry was made, and victim."""

ALONE: VictimOrder = ()
"""Sort key if only one project can pay."""


class VictimQueue:
    """Projects that could pay, with the next unit of each.

    While it is in use, the state changes only by the returned units, each reported with ``taken``.

    Args:
        where: Only units on this node, or None for all.
        smallest: Every project gives small units before large ones.
    """

    def __init__(
        self, entitled: Entitlement, where: NodeName | None = None, *, smallest: bool = False
    ) -> None:
        self.entitled = entitled
        self.where = where
        self.smallest = smallest
        self._heads: dict[int, PreemptionUnit] = {}
        self._heap: list[Entry] = []
        self._gone = 0
        candidates = entitled.candidates
        here = None if where is None else candidates.on_node_by_project(where)
        useful = partial(_useful, entitled)
        self._readers: dict[int, Callable[[], PreemptionUnit | None]] = {
            index: candidates.reader(index, here, useful, smallest=smallest)
            for index in (candidates.projects() if here is None else sorted(here))
            if entitled.may_give(index)
        }
        for index in self._readers:
            self._read(index)
        self._compare()

    def again(self) -> VictimQueue:
        """Return a new queue with the same settings."""
        return VictimQueue(self.entitled, self.where, smallest=self.smallest)

    @property
    def projects(self) -> list[int]:
        """Return the projects that may have to pay now."""
        return [index for _, index, _, _ in self._heap]

    def next(self) -> Victim | None:
        """Return the next unit to pay, or None if no more may be taken."""
        while self._heap:
            key, index, made, victim = heapq.heappop(self._heap)
            if made == self._gone:
                return victim
            now = self.entitled.lawful(victim.unit)
            if now is None:
                continue
            again = self._order_of(now)
            if self._heap and again > key and (again, index) > self._heap[0][:2]:
                heapq.heappush(self._heap, (again, index, self._gone, now))
            else:
                return now
        return None

    def taken(self, victim: Victim) -> None:
        """Record that the unit is gone, and read its project's next unit."""
        self._gone += 1
        index = victim.unit.info.branch.index
        self._read(index)
        if victim.unit.info.branch.path[0] == self.entitled.path[0]:
            self._compare()
        elif index in self._heads:
            self._enter(index)

    def _read(self, index: int) -> None:
        unit = self._readers[index]()
        if unit is None:
            self._heads.pop(index, None)
        else:
            self._heads[index] = unit

    def _compare(self) -> None:
        self._heap = []
        for index in self._heads:
            self._enter(index)

    def _enter(self, index: int) -> None:
        if (victim := self.entitled.lawful(self._heads[index])) is not None:
            heapq.heappush(self._heap, (self._order_of(victim), index, self._gone, victim))

    def _order_of(self, victim: Victim) -> VictimOrder:
        return self.entitled.order_of_victim(victim) if len(self._heads) > 1 else ALONE


def _useful(entitled: Entitlement, unit: PreemptionUnit) -> bool:
    """Return whether taking the unit helps: on its nodes, or for a limit that it fills."""
    state, info = entitled.state, entitled.info
    if unit in entitled.left_out:
        return False
    if any(state.capacity.may_use(info.requirements, worker.node) for worker in unit.workers):
        return True
    return state.ledger.over_limit(info, entitled.wanted, releasing=True) is not None
