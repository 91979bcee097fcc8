"""How many workers of a need every node holds: by that number, the nodes as a set.

Where only GPUs bind, the answer follows from how many GPUs are free. Where CPUs or memory bind
too, an *index* remembers each node's number for that need; changes are written to a log, and an
index reads what is new there when it is next asked for. So a change costs the same whatever number
of needs there are, and a need costs as much as has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.core.bits import members, set_of
from benchpool_scheduler.core.node_room import NodeRoom
from benchpool_scheduler.core.works import Fit

MOST_INDEXES = 256
"""Needs that are remembered at one time; the one not asked for longest is forgotten."""

Need = tuple[int, int, int, bool]
"""GPUs, CPUs and memory of one worker, and whether GPUs of the leaving count."""


@dataclass(slots=True)
class _Index:
    """One need's numbers, as of a place in the log."""

    of: dict[int, int]
    sets: dict[int, int]
    read: int


@dataclass(slots=True)
class SlotIndexes:
    """The indexes of all needs, and the log of changed nodes."""

    nodes: Sequence[NodeRoom]
    _log: list[int] = field(default_factory=list)
    _known: dict[Need, _Index] = field(default_factory=dict)
    _by_order: dict[int, NodeRoom] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Note where each node is."""
        self._by_order = {node.order: node for node in self.nodes}

    def changed(self, node: NodeRoom) -> None:
        """Write down that a node has changed."""
        if self._known:
            self._log.append(node.order)
            if len(self._log) > 4 * len(self.nodes) + 1000:
                self._log.clear()
                self._known.clear()

    def sets(self, fit: Fit, enough: Callable[[], int], *, soon: bool) -> dict[int, int]:
        """Return the nodes by how many workers they hold; those that hold none are left out.

        Args:
            enough: Returns the nodes with GPUs for one worker; no others are looked at.
        """
        key = (fit.gpus, fit.cpus, fit.memory, soon)
        index = self._known.pop(key, None)
        if index is None:
            index = self._made(fit, enough(), soon=soon)
            if len(self._known) >= MOST_INDEXES:
                del self._known[next(iter(self._known))]
        elif index.read < len(self._log):
            self._read(index, fit, soon=soon)
        self._known[key] = index
        return index.sets

    def _made(self, fit: Fit, enough: int, *, soon: bool) -> _Index:
        of: dict[int, int] = {}
        orders: dict[int, list[int]] = {}
        alike: dict[tuple[int, int, int], int] = {}
        for order in members(enough):
            node = self._by_order[order]
            state = node.state(soon=soon)
            if (slots := alike.get(state, -1)) < 0:
                slots = alike[state] = node.slots(fit, soon=soon)
            if slots:
                of[order] = slots
                orders.setdefault(slots, []).append(order)
        sets = {slots: set_of(found) for slots, found in orders.items()}
        return _Index(of, sets, len(self._log))

    def _read(self, index: _Index, fit: Fit, *, soon: bool) -> None:
        sets = index.sets
        for order in set(self._log[index.read :]):
            slots, before = self._by_order[order].slots(fit, soon=soon), index.of.get(order, 0)
            if slots == before:
                continue
            index.of[order] = slots
            bit = 1 << order
            if before:
                sets[before] ^= bit
                if not sets[before]:
                    del sets[before]
            if slots:
                sets[slots] = sets.get(slots, 0) | bit
        index.read = len(self._log)
