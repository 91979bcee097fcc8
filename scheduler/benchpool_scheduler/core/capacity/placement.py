"""Placement of the workers of a gang: packed, keeping whole nodes and racks free (R10, R12, R13).

If some domain holds all workers, the tightest such domain is taken. Otherwise the largest domain is
filled and the rest is placed in the same way. The same rule applies inside each chosen domain, down
to the nodes. There is no search.

In a pool where CPUs, memory or parts of GPUs matter, a single worker goes where it spoils least for
the usual workers (``fragmentation``). Among such nodes the same tightness decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.capacity.bits import first, lowest, members
from benchpool_scheduler.core.capacity.domains import NODE_LEVEL, Domain, domain_of
from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity, NodeCapacity
from benchpool_scheduler.core.jobs.job_info import JobInfo

__all__ = ["NODE_LEVEL", "domain_of", "find", "fits", "reachable"]


@dataclass(frozen=True, slots=True)
class NodeSlots:
    """Number of workers that the nodes of a domain can hold.

    Attributes:
        low: Offset of the positions in ``sets``.
        sets: Nodes by how many workers each can hold, at least one.
        domain: The domain, if the next level is to be looked up inside it.
        size: Number of workers that all nodes can hold.
    """

    low: int
    sets: dict[int, int]
    domain: Domain | None
    size: int

    @property
    def nodes(self) -> int:
        """Return all nodes that can hold a worker."""
        found = 0
        for some in self.sets.values():
            found |= some
        return found

    @property
    def rank(self) -> int:
        """Return the order of the first node."""
        return self.low + lowest(self.nodes)

    def inside(self, domain: Domain) -> NodeSlots:
        """Return the part that lies in a domain."""
        shift, bits = domain.low - self.low, domain.bits
        sets: dict[int, int] = {}
        size = 0
        for slots, some in self.sets.items():
            part = (some >> shift if shift >= 0 else some << -shift) & bits
            if part:
                sets[slots] = part
                size += slots * part.bit_count()
        return NodeSlots(domain.low, sets, domain, size)


def find(
    info: JobInfo,
    count: int,
    capacity: FreeCapacity,
    *,
    releasing: bool,
    among: int | None = None,
) -> list[NodeCapacity] | None:
    """Return the node of each of ``count`` workers, or None if not all of them fit.

    Args:
        releasing: Count GPUs of leaving jobs as free.
        among: Nodes to use, as a set of orders. By default the ``reachable`` nodes. A moving job
        may
            leave its required domain.
    """
    nodes = reachable(info, capacity) if among is None else among
    for choice in _choices(info, capacity, nodes):
        if (places := _place(info, count, capacity, choice, releasing=releasing)) is not None:
            return places
    return None


def fits(info: JobInfo, count: int, capacity: FreeCapacity, *, releasing: bool) -> bool:
    """Return whether ``find`` would find places."""
    nodes = reachable(info, capacity) & capacity.allowed(info.requirements)
    if info.requirements.required is None and capacity.only_gpus_bind(info.requirements):
        return capacity.hold_all(info.requirements.gpus, nodes, count, releasing=releasing)
    everywhere = _holding(capacity, info, nodes, releasing=releasing)
    return _required(info, count, capacity, everywhere) is not None


def reachable(info: JobInfo, capacity: FreeCapacity) -> int:
    """Return the nodes that the job's levels allow. A running job stays in its required domain."""
    level = info.requirements.required
    home = None if level is None else capacity.home(info)
    if level is None or home is None:
        return capacity.every
    held = capacity.by_name.get(home)
    if held is None:
        return 0
    if level == NODE_LEVEL:
        return 1 << held.order
    domain = capacity.levels[level].of.get(held.order)
    return 0 if domain is None else domain.bits << domain.low


def _choices(info: JobInfo, capacity: FreeCapacity, nodes: int) -> Iterator[int]:
    """Yield sets of nodes, best first: each accepted GPU model alone, then all of them (R13)."""
    models = info.requirements.models
    if not models:
        yield nodes & capacity.allowed(info.requirements)
        return
    for model in models:
        yield nodes & capacity.allowed(info.requirements, (model,))
    if len(models) > 1:
        yield nodes & capacity.allowed(info.requirements)


def _place(
    info: JobInfo, count: int, capacity: FreeCapacity, nodes: int, *, releasing: bool
) -> list[NodeCapacity] | None:
    levels = capacity.levels.from_preferred(info.requirements.preferred)
    requirements = info.requirements
    if (
        count == 1
        and requirements.required is None
        and levels[0] == NODE_LEVEL
        and not requirements.spread
    ):
        return _place_one(info, capacity, nodes, releasing=releasing)
    everywhere = _holding(capacity, info, nodes, releasing=releasing)
    domain = _required(info, count, capacity, everywhere)
    if domain is None:
        return None
    return _fill(domain, count, capacity, levels, _Inside(info, releasing))


def _place_one(
    info: JobInfo, capacity: FreeCapacity, nodes: int, *, releasing: bool
) -> list[NodeCapacity] | None:
    """Return the node that one worker spoils least, on a tie the tightest that holds it."""
    if not capacity.only_gpus_bind(info.requirements) and (releasing or info.requirements.fixed):
        fitting = 0
        for some in capacity.slots(info.requirements, nodes, releasing=releasing).values():
            fitting |= some
        nodes = fitting
    if not releasing:
        nodes = capacity.least_spoilt(info.requirements, nodes)
    node = _tightest(capacity, nodes, info.requirements.gpus, releasing=releasing)
    return None if node is None else [node]


def _tightest(
    capacity: FreeCapacity, nodes: int, least: int, *, releasing: bool
) -> NodeCapacity | None:
    """Return the node with the fewest, but at least ``least``, free GPUs. Nodes in use go first."""
    used = nodes & capacity.used
    for group in (used, nodes ^ used):
        if group:
            for found in capacity.by_free[releasing][least:]:
                if best := group & found:
                    return capacity.at(lowest(best))
    return None


def _holding(capacity: FreeCapacity, info: JobInfo, nodes: int, *, releasing: bool) -> NodeSlots:
    sets = capacity.slots(info.requirements, nodes, releasing=releasing)
    size = sum(slots * some.bit_count() for slots, some in sets.items())
    return NodeSlots(0, sets, None, size)


def _required(
    info: JobInfo, count: int, capacity: FreeCapacity, everywhere: NodeSlots
) -> NodeSlots | None:
    """Return the tightest domain of the required level that holds the whole gang."""
    if everywhere.size < count:
        return None
    level = info.requirements.required
    if level is None:
        return everywhere
    if level == NODE_LEVEL:
        slots = min((slots for slots in everywhere.sets if slots >= count), default=None)
        if slots is None:
            return None
        node = lowest(everywhere.sets[slots])
        return NodeSlots(node, {slots: 1}, Domain(node, 1), slots)
    domains = [everywhere.inside(domain) for domain in capacity.levels[level].domains]
    large = [domain for domain in domains if domain.size >= count]
    least = min((domain.size for domain in large), default=0)
    equal = [domain for domain in large if domain.size == least]
    return min(equal, key=lambda domain: domain.rank, default=None)


@dataclass(frozen=True, slots=True)
class _Inside:
    """Job whose workers are placed, and whether GPUs of leaving jobs count as free."""

    info: JobInfo
    releasing: bool


def _fill(
    holding: NodeSlots, count: int, capacity: FreeCapacity, levels: Sequence[str], inside: _Inside
) -> list[NodeCapacity]:
    """Return the node of each worker. The caller has checked that all of them fit."""
    if levels[0] == NODE_LEVEL:
        if inside.info.requirements.spread:
            return _spread_nodes(holding, count, capacity, inside)
        return _fill_nodes(holding, count, capacity, releasing=inside.releasing)
    domains = _domains(holding, capacity, levels[0])
    places: list[NodeCapacity] = []
    for position, domain in enumerate(domains):
        rest = count - len(places)
        if domain.size >= rest:
            least = min(d.size for d in domains[position:] if d.size >= rest)
            domain = next(d for d in domains[position:] if d.size == least)
        places += _fill(domain, min(rest, domain.size), capacity, levels[1:], inside)
        if len(places) == count:
            break
    return places


def _domains(holding: NodeSlots, capacity: FreeCapacity, level: str) -> list[NodeSlots]:
    """Return the domains of a level that can hold a worker, largest first, unlabelled last."""
    inner = [holding.inside(d) for d in capacity.levels.below(holding.domain, level)]
    inner = [found for found in inner if found.size]
    apart = capacity.levels[level].unlabelled >> holding.low
    alone = [
        NodeSlots(holding.low + at, {slots: 1}, Domain(holding.low + at, 1), slots)
        for slots, some in holding.sets.items()
        for at in members(some & apart)
    ]
    ranks = {id(found): (0, found.rank) for found in inner}
    ranks |= {id(found): (1, found.low) for found in alone}
    return sorted([*inner, *alone], key=lambda found: (-found.size, ranks[id(found)]))


def _fill_nodes(
    holding: NodeSlots, count: int, capacity: FreeCapacity, *, releasing: bool
) -> list[NodeCapacity]:
    """Fill the largest nodes until one node holds the rest, then take the tightest such node.

    Used nodes go first.
    """
    sets = {slots: some << holding.low for slots, some in holding.sets.items()}
    places: list[NodeCapacity] = []
    for slots in sorted(sets, reverse=True):
        rest = count - len(places)
        if slots < rest:
            some, number = sets[slots], (rest - 1) // slots
            used = some & capacity.used
            full = first(used, number)
            fuller = first(some ^ used, number - full.bit_count())
            for at in (*members(full), *members(fuller)):
                places += [capacity.at(at)] * slots
            sets[slots] = some & ~(full | fuller)
            rest = count - len(places)
        whole = 0
        for large, some in sets.items():
            if large >= rest:
                whole |= some
        if (tightest := _tightest(capacity, whole, 0, releasing=releasing)) is not None:
            return places + [tightest] * rest
    return places


def _spread_nodes(
    holding: NodeSlots, count: int, capacity: FreeCapacity, inside: _Inside
) -> list[NodeCapacity]:
    """Give every node one worker before any gets a second, the emptiest node first (R12).

    Workers that the job already has are counted.
    """
    slots = {at: some for some, nodes in holding.sets.items() for at in members(nodes)}
    emptiest = [
        at
        for free in reversed(capacity.by_free[inside.releasing])
        for at in members((free >> holding.low) & holding.nodes)
    ]
    has = Counter(worker.node for worker in inside.info.job.held)
    has_here = {at: has[capacity.at(holding.low + at).node.name] for at in emptiest}
    places: list[NodeCapacity] = []
    turn = 1
    while len(places) < count:
        for at in emptiest:
            if has_here[at] < turn and slots[at] and len(places) < count:
                places.append(capacity.at(holding.low + at))
                has_here[at] += 1
                slots[at] -= 1
        turn += 1
    return places
