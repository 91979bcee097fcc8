"""Topology levels of the pool: which nodes share a zone, a rack or a host (R12).

A *domain* is a set of nodes that share a label value at one level. The last level is always `node`,
where each node is a domain of its own. Racks of the same name in different zones are different
racks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.capacity.bits import lowest
from benchpool_scheduler.core.model import Node

NODE_LEVEL = "node"


def domain_of(node: Node, level: str, topology: Sequence[str]) -> tuple[str, ...] | None:
    """Return the name of the node's domain at a level, or None if the node has no such label.

    Racks of the same name in different zones are different racks.

        >>> from benchpool_scheduler.core.model import NodeName
        >>> node = Node(NodeName("n0"), (), labels={"zone": "z1", "rack": "r1"})
        >>> domain_of(node, "rack", ["zone", "rack"])
        ('z1', 'r1')
    """
    if level == NODE_LEVEL:
        return (node.name,)
    if level not in node.labels:
        return None
    wider = topology[: topology.index(level)] if level in topology else ()
    return (*(node.labels.get(name, "") for name in wider), node.labels[level])


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes of one domain, as a set of positions counted from its first node.

    Attributes:
        low: Position of the first node.
        bits: The nodes, shifted down by ``low``.
    """

    low: int
    bits: int


class TopologyLevel:
    """Domains of one level, and the nodes without a label for it.

    Attributes:
        of: Domain of each labelled node, by the node's position.
    """

    __slots__ = ("domains", "of", "unlabelled")

    def __init__(self, nodes: Sequence[tuple[int, Node]], level: str, topology: Sequence[str]):
        found: dict[tuple[str, ...], list[int]] = {}
        self.unlabelled = 0
        for order, node in nodes:
            if (name := domain_of(node, level, topology)) is None:
                self.unlabelled |= 1 << order
            else:
                found.setdefault(name, []).append(order)
        self.domains: list[Domain] = []
        self.of: dict[int, Domain] = {}
        for orders in found.values():
            domain = _domain(orders)
            self.domains.append(domain)
            self.of.update(dict.fromkeys(orders, domain))


def _domain(orders: Sequence[int]) -> Domain:
    low, bits = min(orders), 0
    for order in orders:
        bits |= 1 << (order - low)
    return Domain(low, bits)


class TopologyLevels:
    """All topology levels of a pool. Each level is computed on first use."""

    def __init__(self, nodes: Sequence[tuple[int, Node]], topology: Sequence[str]) -> None:
        self._nodes = nodes
        self._topology = topology
        self._known: dict[str, TopologyLevel] = {}
        self._below: dict[tuple[int, int, str], list[Domain]] = {}

    def __getitem__(self, name: str) -> TopologyLevel:
        if name not in self._known:
            self._known[name] = TopologyLevel(self._nodes, name, self._topology)
        return self._known[name]

    def from_preferred(self, preferred: str | None) -> tuple[str, ...]:
        """Return the levels at which to keep a gang together, widest first, ``node`` last."""
        if preferred is None or preferred == NODE_LEVEL:
            return (NODE_LEVEL,)
        if preferred not in self._topology:
            return (preferred, NODE_LEVEL)
        return (*self._topology[self._topology.index(preferred) :], NODE_LEVEL)

    def below(self, domain: Domain | None, name: str) -> list[Domain]:
        """Return the domains of a level that have nodes in a wider domain, or all if it is None."""
        level = self[name]
        if domain is None:
            return level.domains
        key = (domain.low, domain.bits, name)
        if key not in self._below:
            rest, found = domain.bits << domain.low, []
            while rest:
                inner = level.of.get(lowest(rest))
                if inner is None:
                    rest &= rest - 1
                else:
                    found.append(inner)
                    rest &= ~(inner.bits << inner.low)
            self._below[key] = found
        return self._below[key]
