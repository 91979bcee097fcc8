"""Where the workers of a gang go: packed, keeping whole nodes and racks free (R10, R12, R13).

A *domain* is a set of nodes that share a label value at some level of the machine room; `node` is
always the last level, each node a domain of its own. To place a number of workers among domains:
if some domain holds all of them, take the tightest such; else fill the largest and go on with the
rest. The same rule is applied inside each chosen domain, down to the nodes. No search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchpool_scheduler.core.model import Node
from benchpool_scheduler.core.room import NodeRoom, Room
from benchpool_scheduler.core.works import Work

NODE_LEVEL = "node"


def domain_of(node: Node, level: str, topology: Sequence[str]) -> tuple[str, ...] | None:
    """Return what names the node's domain at a level, or None where it has no such label.

    Two racks of one name in different zones are different racks.

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


def find(
    work: Work,
    count: int,
    room: Room,
    topology: Sequence[str],
    *,
    soon: bool,
    but: NodeRoom | None = None,
) -> list[NodeRoom] | None:
    """Return the node of each of ``count`` workers, or None when not all of them fit.

    Args:
        soon: Count GPUs of leaving jobs as free.
        but: A node to leave out.
    """
    for choice in _choices(work, room, topology):
        nodes = choice if but is None else [node for node in choice if node is not but]
        slots = {n.order: n.slots(work.need, soon=soon) for n in nodes}
        fitting = [n for n in nodes if slots[n.order] > 0]
        for domain in _required(work, fitting, slots, count, topology):
            levels = _levels(work, topology)
            return _fill(domain, count, slots, levels, topology, soon)
    return None


def acceptable(work: Work, room: Room, topology: Sequence[str]) -> list[NodeRoom]:
    """Return the nodes that the job may use at all, whatever is free."""
    nodes = list(_choices(work, room, topology))
    return nodes[-1] if nodes else []


def _choices(work: Work, room: Room, topology: Sequence[str]) -> Iterator[list[NodeRoom]]:
    """Yield sets of nodes, best first: each accepted GPU model alone, then all of them (R13)."""
    nodes = _pinned(work, room, topology)
    models = work.job.gpu_models
    if not models:
        yield nodes
        return
    for model in models:
        yield [n for n in nodes if n.node.gpu_model == model]
    if len(models) > 1:
        yield [n for n in nodes if n.node.gpu_model in models]


def _pinned(work: Work, room: Room, topology: Sequence[str]) -> list[NodeRoom]:
    """Return the nodes on which a running job may grow: those of its required domain."""
    level = work.job.required_level
    if level is None or not work.job.held:
        return room.nodes
    first = room.by_name.get(work.job.held[0].node)
    if first is None:
        return []
    domain = domain_of(first.node, level, topology)
    return [n for n in room.nodes if domain_of(n.node, level, topology) == domain]


def _required(
    work: Work,
    nodes: list[NodeRoom],
    slots: dict[int, int],
    count: int,
    topology: Sequence[str],
) -> Iterator[list[NodeRoom]]:
    """Yield the domains of the required level that hold the whole gang, the tightest first."""
    if work.job.required_level is None:
        domains = [nodes]
    else:
        domains = _domains(nodes, work.job.required_level, topology)
    sizes = [sum(slots[n.order] for n in domain) for domain in domains]
    fits = [i for i, size in enumerate(sizes) if size >= count]
    for i in sorted(fits, key=lambda i: (sizes[i], i)):
        yield domains[i]


def _domains(
    nodes: Sequence[NodeRoom], level: str, topology: Sequence[str]
) -> list[list[NodeRoom]]:
    found: dict[tuple[str, ...], list[NodeRoom]] = {}
    for node in nodes:
        if (name := domain_of(node.node, level, topology)) is not None:
            found.setdefault(name, []).append(node)
    return list(found.values())


def _levels(work: Work, topology: Sequence[str]) -> list[str]:
    """Return the levels at which to keep the gang together, widest first, ``node`` last."""
    preferred = work.job.preferred_level
    if preferred is None or preferred == NODE_LEVEL:
        return [NODE_LEVEL]
    narrower = topology[topology.index(preferred) :] if preferred in topology else [preferred]
    return [*narrower, NODE_LEVEL]


def _fill(
    nodes: Sequence[NodeRoom],
    count: int,
    slots: dict[int, int],
    levels: Sequence[str],
    topology: Sequence[str],
    soon: bool,
) -> list[NodeRoom]:
    """Return the node of each worker; the caller has seen that all of them fit."""
    if levels[0] == NODE_LEVEL:
        return _fill_nodes(nodes, count, slots, soon)
    domains = _domains(nodes, levels[0], topology)
    apart = [n for n in nodes if domain_of(n.node, levels[0], topology) is None]
    domains += [[n] for n in apart]
    sizes = [sum(slots[n.order] for n in domain) for domain in domains]
    places: list[NodeRoom] = []
    left = set(range(len(domains)))
    while len(places) < count:
        rest = count - len(places)
        whole = [i for i in left if sizes[i] >= rest]
        best = (
            min(whole, key=lambda i: (sizes[i], i))
            if whole
            else min(left, key=lambda i: (-sizes[i], i))
        )
        left.remove(best)
        inside = min(rest, sizes[best])
        places += _fill(domains[best], inside, slots, levels[1:], topology, soon)
    return places


def _fill_nodes(
    nodes: Sequence[NodeRoom], count: int, slots: dict[int, int], soon: bool
) -> list[NodeRoom]:
    """Take the tightest node that holds the rest, used nodes first; else the largest."""

    def tightness(node: NodeRoom) -> tuple[bool, int, int]:
        return (node.workers == 0, node.free_gpus(soon=soon), node.order)

    def largeness(node: NodeRoom) -> tuple[int, bool, int]:
        return (-slots[node.order], node.workers == 0, node.order)

    places: list[NodeRoom] = []
    left = list(nodes)
    while len(places) < count:
        rest = count - len(places)
        whole = [n for n in left if slots[n.order] >= rest]
        best = min(whole, key=tightness) if whole else min(left, key=largeness)
        left.remove(best)
        places += [best] * min(rest, slots[best.order])
    return places
