"""Who pays next for a claim (R15, R18).

While chunks go, every project beside the claimant's path only becomes less due to pay. So the next
payer is found with a heap whose entries are looked at again when they come up; only what the
claimant's own side gives can entitle it to more, and then the heap is made anew.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial

from benchpool_scheduler.core.cluster.preemption_units import Chunk
from benchpool_scheduler.core.model import NodeName
from benchpool_scheduler.core.preemption.entitlement import Entitlement, Paid, Payer

Entry = tuple[Payer, int, Paid]


class Payers:
    """The projects that could pay, with what each would give next.

    Args:
        where: Only what is on this node.
        smallest: Let every project give small chunks before large ones.
    """

    def __init__(
        self, entitled: Entitlement, where: NodeName | None = None, *, smallest: bool = False
    ) -> None:
        self.entitled = entitled
        self._heads: dict[int, Chunk] = {}
        self._heap: list[Entry] = []
        givers = entitled.givers
        here = None if where is None else givers.on_node_by_project(where)
        useful = partial(_useful, entitled)
        self._readers: dict[int, Callable[[], Chunk | None]] = {
            index: givers.reader(index, here, useful, smallest=smallest)
            for index in (givers.projects() if here is None else sorted(here))
            if entitled.may_give(index)
        }
        for index in self._readers:
            self._read(index)

    @property
    def projects(self) -> list[int]:
        """Return the projects that may be made to pay now."""
        return [index for _, index, _ in self._heap]

    def next(self) -> Paid | None:
        """Return what should pay next, or None when nothing more may be taken."""
        while self._heap:
            key, index, paid = heapq.heappop(self._heap)
            now = self.entitled.lawful(paid.chunk)
            if now is None:
                continue
            again = self.entitled.payer(now)
            if self._heap and again > key and (again, index) > self._heap[0][:2]:
                heapq.heappush(self._heap, (again, index, now))
            else:
                return now
        return None

    def taken(self, paid: Paid) -> None:
        """The chunk is gone; see what comes after it."""
        self._read(paid.chunk.work.branch.index)
        if paid.chunk.work.branch.path[0] == self.entitled.path[0]:
            self._heap = []
            for index in self._heads:
                self._enter(index)

    def _read(self, index: int) -> None:
        chunk = self._readers[index]()
        if chunk is None:
            self._heads.pop(index, None)
        else:
            self._heads[index] = chunk
            self._enter(index)

    def _enter(self, index: int) -> None:
        if (paid := self.entitled.lawful(self._heads[index])) is not None:
            heapq.heappush(self._heap, (self.entitled.payer(paid), index, paid))


def _useful(entitled: Entitlement, chunk: Chunk) -> bool:
    """Tell whether the claimant could use its nodes, or is bound by a limit that it fills."""
    board, work = entitled.board, entitled.work
    if any(board.room.may_use(work.fit, worker.node) for worker in chunk.workers):
        return True
    return board.ledger.over_limit(work, entitled.wanted, soon=True) is not None
