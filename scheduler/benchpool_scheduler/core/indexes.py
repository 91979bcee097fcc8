"""A number for every node, remembered: by that number, the nodes as a set.

The number is how many workers of a need the node holds, or what a worker there would spoil. Where
only free GPUs decide, no index is needed. Else an *index* remembers each node's number; changes
are written to a log, and an index reads what is new there when it is next asked for. So a change
costs the same whatever number of indexes there are, and a question costs what has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.bits import members, set_of
from benchpool_scheduler.core.node_room import NodeRoom

MOST_INDEXES = 256
"""Indexes that are remembered at one time; the one not asked for longest is forgotten."""

Number = Callable[[NodeRoom], int | None]
"""A node's number; None where it is to be left out."""


@dataclass(slots=True)
class _Index:
    """The numbers by the node's order, and the sets by number, as of a place in the log."""

    of: list[int | None]
    sets: dict[int, int]
    read: int


class Indexes:
    """All indexes of a room, and the log of changed nodes."""

    def __init__(self, nodes: Sequence[NodeRoom]) -> None:
        self._nodes = nodes
        self._by_order = {node.order: node for node in nodes}
        self._log: list[int] = []
        self._known: dict[Hashable, _Index] = {}

    def changed(self, node: NodeRoom) -> None:
        """Write down that a node has changed."""
        if self._known:
            self._log.append(node.order)
            if len(self._log) > 4 * len(self._nodes) + 1000:
                self._log.clear()
                self._known.clear()

    def sets(
        self, key: Hashable, number: Number, among: Callable[[], int] | None = None
    ) -> dict[int, int]:
        """Return the nodes by their number; of one key the number is always the same.

        Args:
            among: Returns the only nodes that have a number at the moment.
        """
        index = self._known.pop(key, None)
        if index is None:
            index = self._made(number, self._nodes if among is None else self._in(among()))
            if len(self._known) >= MOST_INDEXES:
                del self._known[next(iter(self._known))]
        elif index.read < len(self._log):
            self._read(index, number)
        self._known[key] = index
        return index.sets

    def _in(self, nodes: int) -> Iterator[NodeRoom]:
        return (self._by_order[order] for order in members(nodes))

    def _made(self, number: Number, nodes: Iterable[NodeRoom]) -> _Index:
        of: list[int | None] = [None] * (max(self._by_order, default=-1) + 1)
        orders: dict[int, list[int]] = {}
        for node in nodes:
            found = of[node.order] = number(node)
            if found is not None:
                orders.setdefault(found, []).append(node.order)
        sets = {found: set_of(some) for found, some in orders.items()}
        return _Index(of, sets, len(self._log))

    def _read(self, index: _Index, number: Number) -> None:
        sets = index.sets
        for order in set(self._log[index.read :]):
            found, before = number(self._by_order[order]), index.of[order]
            if found == before:
                continue
            index.of[order] = found
            bit = 1 << order
            if before is not None:
                sets[before] ^= bit
                if not sets[before]:
                    del sets[before]
            if found is not None:
                sets[found] = sets.get(found, 0) | bit
        index.read = len(self._log)
