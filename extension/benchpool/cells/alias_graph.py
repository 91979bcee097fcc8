"""Alias graph: objects that are the same, parts of one another or kept inside, and changes."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar


class Change(enum.IntEnum):
    """Depth of a change; a greater value includes the smaller ones."""

    ITEM = 1
    """An item was added, replaced or removed; parts taken out earlier stay as they are."""
    SHALLOW = 2
    """The data itself changed, and with it its parts and views."""
    DEEP = 3
    """The objects that it keeps changed too (the steps of a fitted pipeline, an optimiser's
    model).
    """
    THROUGH = 4
    """Objects that it keeps for reading only changed too, by direct access (``loader.dataset.k =
    1``).
    """


@dataclass(frozen=True, slots=True)
class HeldNames:
    """Names that a value is made of: it may be one, may be a part of one, or keeps one inside.

    Ordinary changes do not pass through ``quiet`` names: a loader never changes its data.
    """

    same: frozenset[str] = frozenset()
    part: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    quiet: frozenset[str] = frozenset()

    def __or__(self, other: HeldNames) -> HeldNames:
        if other is NOTHING:
            return self
        if self is NOTHING:
            return other
        return HeldNames(
            self.same | other.same,
            self.part | other.part,
            self.inside | other.inside,
            self.quiet | other.quiet,
        )

    @property
    def names(self) -> frozenset[str]:
        """All names, in whichever way they are held."""
        return self.same | self.part | self.inside | self.quiet

    @property
    def reached(self) -> frozenset[str]:
        """Names that may change when the value changes."""
        return self.same | self.part | self.inside

    def as_part(self) -> HeldNames:
        """Return the names that an element, attribute or view of the value is made of.

        >>> HeldNames(frozenset("a"), inside=frozenset("b")).as_part().part == {"a", "b"}
        True
        """
        return HeldNames(part=self.same | self.part | self.inside, quiet=self.quiet)

    def as_inside(self) -> HeldNames:
        """Return the names held by a list or an object that keeps the value."""
        return HeldNames(inside=self.same | self.part | self.inside, quiet=self.quiet)

    def as_quiet(self) -> HeldNames:
        """Return the names held by an object that keeps the value and never changes it."""
        return HeldNames(quiet=self.names)


NOTHING = HeldNames()
Node = TypeVar("Node", bound=Hashable)

_NO_TIES: dict[Any, tuple[Change, Change | None]] = {}


def _merged(found: dict[Node, Change], more: dict[Node, Change]) -> dict[Node, Change]:
    """Return both mappings merged, with the deeper change of each node. Fast if one is small."""
    small, large = sorted((found, more), key=len)
    both = {**large, **small}
    for node in small:
        if large.get(node, 0) > small[node]:
            both[node] = large[node]
    return both


class AliasGraph(Generic[Node]):
    """Graph of objects and the ties between them.

    >>> graph = AliasGraph[str]()
    >>> graph.add("opt", inside=["net"])
    >>> sorted(graph.reached({"opt": Change.DEEP}))
    ['net', 'opt']
    >>> sorted(graph.reached({"net": Change.DEEP})), sorted(graph.needed(["opt"]))
    (['net'], ['net', 'opt'])
    """

    def __init__(self) -> None:
        self._passes: dict[Node, dict[Node, tuple[Change, Change | None]]] = defaultdict(dict)
        """For each neighbour, the least change that passes to it and the change it becomes (None:
        the same).
        """
        self._held: dict[Node, dict[Node, None]] = defaultdict(dict)
        self._wholes: dict[Node, dict[Node, None]] = defaultdict(dict)
        self._reached: dict[tuple[Node, Change], dict[Node, Change]] = {}

    def add(
        self,
        node: Node,
        same: Iterable[Node] = (),
        part: Iterable[Node] = (),
        inside: Iterable[Node] = (),
        quiet: Iterable[Node] = (),
        data: Iterable[Node] = (),
    ) -> None:
        """Tie a node to the objects that it may be, may be a part of, or keeps.

        ``data`` are wholes of which the node is a part or a copy. A new column of the node is not a
        change of them.
        """
        for other in same:
            self._tie(node, other, Change.ITEM, None)
            self._tie(other, node, Change.ITEM, None)
            self._hold(node, other)
            self._hold(other, node)
        for other in part:
            self._wholes[node][other] = None
            self._tie(node, other, Change.ITEM, Change.DEEP)
            self._tie(other, node, Change.SHALLOW, None)
        for other in data:
            self._tie(node, other, Change.SHALLOW, Change.SHALLOW)
            self._tie(other, node, Change.SHALLOW, None)
        for other in inside:
            self._tie(node, other, Change.DEEP, None)
            self._hold(node, other)
        for other in quiet:
            self._tie(node, other, Change.THROUGH, None)
            self._hold(node, other)

    def _tie(self, node: Node, other: Node, least: Change, becomes: Change | None) -> None:
        before = self._passes[node].get(other)
        if other != node and (before is None or least < before[0]):
            self._reached.clear()
            self._passes[node][other] = (least, becomes)

    def _hold(self, node: Node, other: Node) -> None:
        if other != node:
            self._held[node][other] = None

    def reached(self, changed: Mapping[Node, Change]) -> dict[Node, Change]:
        """Return all nodes that change when the given ones do, and how deep."""
        found: dict[Node, Change] = {}
        for node, how in changed.items():
            found = _merged(found, self._from(node, how))
        return found

    def _from(self, start: Node, how: Change) -> dict[Node, Change]:
        known = self._reached.get((start, how))
        if known is not None:
            return known
        found: dict[Node, Change] = {}
        waiting = [(start, how)]
        while waiting:
            node, so_deep = waiting.pop()
            before = found.get(node)
            if before is not None and before >= so_deep:
                continue
            more = self._reached.get((node, so_deep))
            if more is not None:
                found = _merged(found, more)
                continue
            found[node] = so_deep
            for other, (least, becomes) in self._passes.get(node, _NO_TIES).items():
                if so_deep >= least:
                    waiting.append((other, so_deep if becomes is None else becomes))
        self._reached[(start, how)] = found
        return found

    def needed(self, nodes: Iterable[Node]) -> set[Node]:
        """Return the nodes whose changes are visible through the given nodes."""
        found: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.held(node)
        return found

    def taken_from(self, nodes: Collection[Node]) -> set[Node]:
        """Return the nodes, the wholes that they may be parts of, and all that these hold."""
        return self.needed([*nodes, *self.wholes(nodes)])

    def wholes(self, nodes: Iterable[Node]) -> set[Node]:
        """Return the wholes that nodes may be parts of, which keep what their parts keep."""
        return {whole for node in nodes for whole in self._wholes.get(node, ())}

    def held(self, node: Node) -> Iterable[Node]:
        """Return the nodes that a node may be or keeps, one step away."""
        return self._held.get(node, ())

    def holders(self, nodes: Iterable[Node]) -> set[Node]:
        """Return the nodes that need one of the given nodes, themselves included."""
        back: dict[Node, list[Node]] = defaultdict(list)
        for node, others in self._held.items():
            for other in others:
                back[other].append(node)
        found: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += back.get(node, ())
        return found
