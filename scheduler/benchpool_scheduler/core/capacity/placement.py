"""Where the workers of a gang go: packed, keeping whole nodes and racks free (R10, R12, R13).

To place a number of workers among domains: if some domain holds all of them, take the tightest
such; else fill the largest and go on with the rest. The same rule is applied inside each chosen
domain, down to the nodes. No search.

A single worker in a pool where CPUs, memory or parts of GPUs matter goes where it spoils least
for the workers that are usual there (`fragments`); among such nodes the same tightness decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.capacity.bits import first, lowest, members
from benchpool_scheduler.core.capacity.domains import NODE_LEVEL, Domain, domain_of
from benchpool_scheduler.core.capacity.free_capacity import NodeRoom, Room
from benchpool_scheduler.core.jobs.job_info import Work

__all__ = ["NODE_LEVEL", "domain_of", "find", "fits", "reachable"]


@dataclass(frozen=True, slots=True)
class Holding:
    """How many workers the nodes of a domain hold.

    Attributes:
        low: What the positions below are counted from.
        sets: Nodes by how many workers each holds; at least one.
        domain: The domain, where the next level is to be looked up inside it.
        size: How many workers all of them hold.
    """

    low: int
    sets: dict[int, int]
    domain: Domain | None
    size: int

    @property
    def nodes(self) -> int:
        """Return all nodes that hold any."""
        found = 0
        for some in self.sets.values():
            found |= some
        return found

    @property
    def rank(self) -> int:
        """Return the order of the first node here."""
        return self.low + lowest(self.nodes)

    def inside(self, domain: Domain) -> Holding:
        """Return the part of it that is in a domain."""
        shift, bits = domain.low - self.low, domain.bits
        sets: dict[int, int] = {}
        size = 0
        for slots, some in self.sets.items():
            part = (some >> shift if shift >= 0 else some << -shift) & bits
            if part:
                sets[slots] = part
                size += slots * part.bit_count()
        return Holding(domain.low, sets, domain, size)


def find(
    work: Work,
    count: int,
    room: Room,
    *,
    soon: bool,
    only: NodeRoom | None = None,
    but: NodeRoom | None = None,
    anywhere: bool = False,
) -> list[NodeRoom] | None:
    """Return the node of each of ``count`` workers, or None when not all of them fit.

    Args:
        soon: Count GPUs of leaving jobs as free.
        only: The one node to look at. ``but``: a node to leave out.
        anywhere: A running job may leave the required domain that it is in (for moves).
    """
    nodes = _open(work, room, only, but, anywhere=anywhere)
    for choice in _choices(work, room, nodes):
        if (places := _place(work, count, room, choice, soon=soon)) is not None:
            return places
    return None


def fits(work: Work, count: int, room: Room, *, soon: bool, only: NodeRoom | None = None) -> bool:
    """Tell whether ``find`` would find places."""
    if only is not None and only.slots(work.fit, soon=soon) < count:
        return False
    nodes = _open(work, room, only, None, anywhere=False) & room.allowed(work.fit)
    if work.fit.required is None and room.only_gpus_bind(work.fit):
        return room.hold_all(work.fit.gpus, nodes, count, soon=soon)
    everywhere = _holding(room, work, nodes, soon=soon)
    return _required(work, count, room, everywhere) is not None


def _open(
    work: Work, room: Room, only: NodeRoom | None, but: NodeRoom | None, *, anywhere: bool
) -> int:
    """Return the nodes to look at."""
    nodes = room.every if anywhere else reachable(work, room)
    if only is not None:
        nodes &= 1 << only.order
    if but is not None:
        nodes &= ~(1 << but.order)
    return nodes


def reachable(work: Work, room: Room) -> int:
    """Return the nodes that its levels allow: a running job grows inside its required domain."""
    level = work.fit.required
    home = None if level is None else room.home(work)
    if level is None or home is None:
        return room.every
    held = room.by_name.get(home)
    if held is None:
        return 0
    if level == NODE_LEVEL:
        return 1 << held.order
    domain = room.levels[level].of.get(held.order)
    return 0 if domain is None else domain.bits << domain.low


def _choices(work: Work, room: Room, nodes: int) -> Iterator[int]:
    """Yield sets of nodes, best first: each accepted GPU model alone, then all of them (R13)."""
    models = work.fit.models
    if not models:
        yield nodes & room.allowed(work.fit)
        return
    for model in models:
        yield nodes & room.allowed(work.fit, (model,))
    if len(models) > 1:
        yield nodes & room.allowed(work.fit)


def _place(work: Work, count: int, room: Room, nodes: int, *, soon: bool) -> list[NodeRoom] | None:
    levels = room.levels.from_preferred(work.fit.preferred)
    fit = work.fit
    if count == 1 and fit.required is None and levels[0] == NODE_LEVEL and not fit.spread:
        return _place_one(work, room, nodes, soon=soon)
    everywhere = _holding(room, work, nodes, soon=soon)
    domain = _required(work, count, room, everywhere)
    if domain is None:
        return None
    return _fill(domain, count, room, levels, _Inside(work, soon))


def _place_one(work: Work, room: Room, nodes: int, *, soon: bool) -> list[NodeRoom] | None:
    """Return the node that one worker spoils least, among such the tightest that holds it."""
    if not room.only_gpus_bind(work.fit) and (soon or work.fit.fixed):
        fitting = 0
        for some in room.slots(work.fit, nodes, soon=soon).values():
            fitting |= some
        nodes = fitting
    if not soon:
        nodes = room.least_spoilt(work.fit, nodes)
    node = _tightest(room, nodes, work.fit.gpus, soon=soon)
    return None if node is None else [node]


def _tightest(room: Room, nodes: int, least: int, *, soon: bool) -> NodeRoom | None:
    """Return the node with the fewest free GPUs, at least so many; nodes in use go first."""
    used = nodes & room.used
    for group in (used, nodes ^ used):
        if group:
            for found in room.by_free[soon][least:]:
                if best := group & found:
                    return room.at(lowest(best))
    return None


def _holding(room: Room, work: Work, nodes: int, *, soon: bool) -> Holding:
    sets = room.slots(work.fit, nodes, soon=soon)
    size = sum(slots * some.bit_count() for slots, some in sets.items())
    return Holding(0, sets, None, size)


def _required(work: Work, count: int, room: Room, everywhere: Holding) -> Holding | None:
    """Return the tightest domain of the required level that holds the whole gang."""
    if everywhere.size < count:
        return None
    level = work.fit.required
    if level is None:
        return everywhere
    if level == NODE_LEVEL:
        slots = min((slots for slots in everywhere.sets if slots >= count), default=None)
        if slots is None:
            return None
        node = lowest(everywhere.sets[slots])
        return Holding(node, {slots: 1}, Domain(node, 1), slots)
    domains = [everywhere.inside(domain) for domain in room.levels[level].domains]
    large = [domain for domain in domains if domain.size >= count]
    least = min((domain.size for domain in large), default=0)
    equal = [domain for domain in large if domain.size == least]
    return min(equal, key=lambda domain: domain.rank, default=None)


@dataclass(frozen=True, slots=True)
class _Inside:
    """For whom nodes are filled, and whether GPUs of leaving jobs count."""

    work: Work
    soon: bool


def _fill(
    holding: Holding, count: int, room: Room, levels: Sequence[str], inside: _Inside
) -> list[NodeRoom]:
    """Return the node of each worker; the caller has seen that all of them fit."""
    if levels[0] == NODE_LEVEL:
        if inside.work.fit.spread:
            return _spread_nodes(holding, count, room, inside)
        return _fill_nodes(holding, count, room, soon=inside.soon)
    domains = _domains(holding, room, levels[0])
    places: list[NodeRoom] = []
    for position, domain in enumerate(domains):
        rest = count - len(places)
        if domain.size >= rest:
            least = min(d.size for d in domains[position:] if d.size >= rest)
            domain = next(d for d in domains[position:] if d.size == least)
        places += _fill(domain, min(rest, domain.size), room, levels[1:], inside)
        if len(places) == count:
            break
    return places


def _domains(holding: Holding, room: Room, level: str) -> list[Holding]:
    """Return the domains of a level that hold any, the largest first; nodes without one last."""
    inner = [holding.inside(d) for d in room.levels.below(holding.domain, level)]
    inner = [found for found in inner if found.size]
    apart = room.levels[level].unlabelled >> holding.low
    alone = [
        Holding(holding.low + at, {slots: 1}, Domain(holding.low + at, 1), slots)
        for slots, some in holding.sets.items()
        for at in members(some & apart)
    ]
    ranks = {id(found): (0, found.rank) for found in inner}
    ranks |= {id(found): (1, found.low) for found in alone}
    return sorted([*inner, *alone], key=lambda found: (-found.size, ranks[id(found)]))


def _fill_nodes(holding: Holding, count: int, room: Room, *, soon: bool) -> list[NodeRoom]:
    """Take the tightest node that holds the rest, used nodes first; else the largest."""
    sets = {slots: some << holding.low for slots, some in holding.sets.items()}
    places: list[NodeRoom] = []
    for slots in sorted(sets, reverse=True):
        rest = count - len(places)
        if slots < rest:
            some, number = sets[slots], (rest - 1) // slots
            used = some & room.used
            full = first(used, number)
            fuller = first(some ^ used, number - full.bit_count())
            for at in (*members(full), *members(fuller)):
                places += [room.at(at)] * slots
            sets[slots] = some & ~(full | fuller)
            rest = count - len(places)
        whole = 0
        for large, some in sets.items():
            if large >= rest:
                whole |= some
        if (tightest := _tightest(room, whole, 0, soon=soon)) is not None:
            return places + [tightest] * rest
    return places


def _spread_nodes(holding: Holding, count: int, room: Room, inside: _Inside) -> list[NodeRoom]:
    """Give every node one worker before any gets a second, the emptiest node first (R12).

    Workers that the job already has count as given.
    """
    slots = {at: some for some, nodes in holding.sets.items() for at in members(nodes)}
    emptiest = [
        at
        for free in reversed(room.by_free[inside.soon])
        for at in members((free >> holding.low) & holding.nodes)
    ]
    has = Counter(worker.node for worker in inside.work.job.held)
    has_here = {at: has[room.at(holding.low + at).node.name] for at in emptiest}
    places: list[NodeRoom] = []
    turn = 1
    while len(places) < count:
        for at in emptiest:
            if has_here[at] < turn and slots[at] and len(places) < count:
                places.append(room.at(holding.low + at))
                has_here[at] += 1
                slots[at] -= 1
        turn += 1
    return places
