"""Which objects are the same, parts of one another, or kept inside: how far a change reaches."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar


class Change(enum.IntEnum):
    """How deep a change goes; the greater includes the smaller."""

    ITEM = 1
    """Something was added, replaced or taken away: parts taken out before stay as they are."""
    SHALLOW = 2
    """The data itself: parts and views of it change too."""
    DEEP = 3
    """Also what it keeps inside (a fitted pipeline's steps, an optimiser's model)."""
    THROUGH = 4
    """Also what it keeps for reading only, since it was reached for (``loader.dataset.k = 1``)."""


@dataclass(frozen=True, slots=True)
class HeldNames:
    """What a value is made of: names that it may be, may be a part of, or keeps inside.

    Through ``quiet`` ones no change passes: a loader never changes its data.
    """

    same: frozenset[str] = frozenset()
    part: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    quiet: frozenset[str] = frozenset()

    def __or__(self, other: HeldNames) -> HeldNames:
        return HeldNames(
            self.same | other.same,
            self.part | other.part,
            self.inside | other.inside,
            self.quiet | other.quiet,
        )

    @property
    def names(self) -> frozenset[str]:
        """All names, however they are held."""
        return self.same | self.part | self.inside | self.quiet

    @property
    def reached(self) -> frozenset[str]:
        """The names that a change of the value may change."""
        return self.same | self.part | self.inside

    def as_part(self) -> HeldNames:
        """Return what an element, attribute or view of the value is made of.

        >>> HeldNames(frozenset("a"), inside=frozenset("b")).as_part().part == {"a", "b"}
        True
        """
        return HeldNames(part=self.same | self.part | self.inside, quiet=self.quiet)

    def as_inside(self) -> HeldNames:
        """Return what a list or an object that keeps the value is made of."""
        return HeldNames(inside=self.same | self.part | self.inside, quiet=self.quiet)

    def as_quiet(self) -> HeldNames:
        """Return what an object is made of that keeps the value and never changes it."""
        return HeldNames(quiet=self.names)


NOTHING = HeldNames()
Node = TypeVar("Node", bound=Hashable)

_NO_TIES: dict[Any, tuple[Change, Change | None]] = {}


def _merged(found: dict[Node, Change], more: dict[Node, Change]) -> dict[Node, Change]:
    """Return both, the deeper change of each; quick where one is small."""
    small, large = sorted((found, more), key=len)
    both = {**large, **small}
    for node in small:
        if large.get(node, 0) > small[node]:
            both[node] = large[node]
    return both


class AliasGraph(Generic[Node]):
    """Objects as nodes, and what ties them.

    >>> graph = AliasGraph[str]()
    >>> graph.add("opt", inside=["net"])
    >>> sorted(graph.reached({"opt": Change.DEEP}))
    ['net', 'opt']
    >>> sorted(graph.reached({"net": Change.DEEP})), sorted(graph.needed(["opt"]))
    (['net'], ['net', 'opt'])
    """

    def __init__(self) -> None:
        self._passes: dict[Node, dict[Node, tuple[Change, Change | None]]] = defaultdict(dict)
        """For each neighbour the least change that passes to it, and as what (None: as it is)."""
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
        """Tie a node to what it may be, may be a part of, or keeps.

        ``data`` are wholes of which it is a part or a copy: a new column of it is none of theirs.
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
        """Return all that changes when these do."""
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
        """Return the nodes whose changes are seen by who has these."""
        found: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.held(node)
        return found

    def taken_from(self, nodes: Collection[Node]) -> set[Node]:
        """Return the nodes, and those that they may be parts of, and what all these hold."""
        return self.needed([*nodes, *self.wholes(nodes)])

    def wholes(self, nodes: Iterable[Node]) -> set[Node]:
        """Return what nodes may be parts of: what a part keeps from now on, that keeps too."""
        return {whole for node in nodes for whole in self._wholes.get(node, ())}

    def held(self, node: Node) -> Iterable[Node]:
        """Return what a node may be or keeps, one step far."""
        return self._held.get(node, ())

    def holders(self, nodes: Iterable[Node]) -> set[Node]:
        """Return the nodes that have one of these among what they need, themselves included."""
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
