"""Nodes grouped by their number of free whole GPUs."""

from __future__ import annotations

from collections.abc import Iterable


class Buckets(list[int]):
    """One set of nodes per number of free GPUs, from 0 to the most that a node has.

    Attributes:
        filled: Numbers whose set is not empty. There are few, however many GPUs a node has.
    """

    __slots__ = ("_known", "filled")

    def __init__(self, sets: Iterable[int]) -> None:
        super().__init__(sets)
        self.filled = {free for free, found in enumerate(self) if found}
        self._known: dict[int, int] = {}  # free GPUs by set of nodes, until the next move

    def move(self, bit: int, before: int, after: int) -> None:
        """Move a node to another number of free GPUs.

        >>> buckets = Buckets([0b00, 0b11])
        >>> buckets.move(0b01, 1, 0)
        >>> buckets, sorted(buckets.filled)
        ([1, 2], [0, 1])
        """
        if self._known:
            self._known.clear()
        self[before] ^= bit
        if not self[before]:
            self.filled.discard(before)
        self[after] |= bit
        self.filled.add(after)

    def gpus(self, nodes: int) -> int:
        """Return the number of free GPUs on these nodes.

        >>> Buckets([0b001, 0b010, 0b100]).gpus(0b110)
        3
        """
        known = self._known.get(nodes)
        if known is None:
            known = sum(free * (self[free] & nodes).bit_count() for free in self.filled)
            self._known[nodes] = known
        return known
