"""Indexes of nodes: a cached number per node, and the set of nodes for each number.

The number is how many workers of a request the node can hold, or how much a worker would spoil. No
index is needed where only free GPUs decide. Changed nodes are written to a log. An index reads the
new entries of the log on its next query. A change therefore costs the same for any number of
indexes, and a query costs in proportion to the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from benchpool_scheduler.core.capacity.bits import members, set_of
from benchpool_scheduler.core.capacity.node_capacity import NodeCapacity
from benchpool_scheduler.core.jobs.job_info import Requirements

MOST_INDEXES = 256
"""Limit on cached indexes. The least recently used one is dropped."""

Number = TypeVar("Number", bound=Hashable)
"""Number of a node, or another hashable value. None leaves the node out."""


Mark = tuple[int, int, int]
"""Number of times the log was cleared, its length, and the number of indexes made so far."""


@dataclass(slots=True)
class _Index(Generic[Number]):
    """Numbers by the node's order, and sets by number, as of a position in the log.

    ``number`` is the index's number among all indexes ever made. ``again`` holds nodes to read
    again in addition to those in the log after ``read``.
    """

    of: list[Number | None]
    sets: dict[Number, int]
    read: int
    number: int
    again: set[int] = field(default_factory=set)


class Indexes:
    """All indexes of the nodes, and the log of changed nodes."""

    def __init__(self, nodes: Sequence[NodeCapacity]) -> None:
        self._nodes = nodes
        self._by_order = {node.order: node for node in nodes}
        self._log: list[int] = []
        self._forgotten = self._count = 0
        self._known: dict[Hashable, _Index[Any]] = {}

    def changed(self, node: NodeCapacity) -> None:
        """Log that a node has changed."""
        if self._known:
            self._log.append(node.order)
            if len(self._log) > 4 * len(self._nodes) + 1000:
                self._log.clear()
                self._known.clear()
                self._forgotten += 1

    def mark(self) -> Mark:
        """Return a mark for ``back_to``, which undoes later changes."""
        return self._forgotten, len(self._log), self._count

    def back_to(self, mark: Mark) -> None:
        """Reset the log to a mark. Only indexes that have read later changes read them again."""
        forgotten, place, count = mark
        if forgotten != self._forgotten or place == len(self._log):
            return
        since = set(self._log[place:])
        for index in self._known.values():
            if index.read > place or index.number > count:  # made since, from undone changes
                index.again |= since
                index.read = place
        del self._log[place:]

    def sets(
        self,
        key: Hashable,
        number: Callable[[NodeCapacity], Number | None],
        at_first: Callable[[], dict[Number, int]] | None = None,
    ) -> dict[Number, int]:
        """Return the nodes by their number. The same key must always give the same number.

        Args:
            number: Returns the number of a node.
            at_first: Returns the sets for all nodes at once, if that is cheaper than node by node.
        """
        index: _Index[Number] | None = self._known.pop(key, None)
        if index is None:
            sets = self._node_by_node(number) if at_first is None else at_first()
            index = self._made(sets)
            if len(self._known) >= MOST_INDEXES:
                del self._known[next(iter(self._known))]
        elif index.again or index.read < len(self._log):
            self._read(index, number)
        self._known[key] = index
        return index.sets

    def among(
        self, nodes: int, number: Callable[[NodeCapacity], Number | None]
    ) -> dict[Number, int]:
        """Return these nodes by their number, without caching."""
        orders: dict[Number, list[int]] = {}
        for order in members(nodes):
            if (found := number(self._by_order[order])) is not None:
                orders.setdefault(found, []).append(order)
        return {found: set_of(some) for found, some in orders.items()}

    def _node_by_node(self, number: Callable[[NodeCapacity], Number | None]) -> dict[Number, int]:
        return self.among(set_of(self._by_order), number)

    def _made(self, sets: dict[Number, int]) -> _Index[Number]:
        of: list[Number | None] = [None] * (max(self._by_order, default=-1) + 1)
        for found, some in sets.items():
            for order in members(some):
                of[order] = found
        self._count += 1
        return _Index(of, sets, len(self._log), self._count)

    def _read(self, index: _Index[Number], number: Callable[[NodeCapacity], Number | None]) -> None:
        sets = index.sets
        for order in index.again.union(self._log[index.read :]):
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
        index.again.clear()


def slots_of(
    requirements: Requirements, *, releasing: bool
) -> Callable[[NodeCapacity], int | None]:
    """Return a function that computes how many workers a node can hold, cached by free capacity."""
    alike: dict[tuple[int, int, int, int], int] = {}

    def slots(node: NodeCapacity) -> int | None:
        if requirements.part:
            return node.slots(requirements, releasing=releasing) or None
        room = node.room(releasing=releasing)
        found = alike.get(room)
        if found is None:
            found = alike[room] = node.slots(requirements, releasing=releasing)
        return found or None

    return slots


def asked(requirements: Requirements) -> tuple[int, int, int, int, int, bool]:
    """Return the requirements that decide how many workers a node can hold, as part of a key."""
    return (
        requirements.gpus,
        requirements.part,
        requirements.owner,
        requirements.cpus,
        requirements.memory,
        requirements.fixed,
    )
