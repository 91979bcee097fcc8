"""The nodes as the core sees them: what they are made of, and made of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.core.model import GpuId, Node, NodeName
from benchpool_scheduler.runtime import DeviceState, NodeFacts
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed import closings
from benchpool_scheduler.service.observed.inventory import UNKNOWN, Inventory, node_of
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.store.records import NodeRecord

Links = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """All that the nodes are made of; equal grounds make equal nodes.

    Attributes:
        kept: GPUs that nodes keep for benches (R3); ``called`` those of them that were lent and
            have an owner who waits. ``lends``: the others may be used by what can be paused.
        leased: GPUs that benches hold. ``clung``: GPUs that are not usable, but held by workers.
        drained: Machines that take no starts for a fault of their own. ``closed``: those that an
            administrator closed. ``said``: what was said of machines, those and others.
        blocked: GPUs of jobs that the core does not know of.
    """

    inventory: Inventory
    kept: Mapping[str, int]
    leased: frozenset[str]
    clung: frozenset[str]
    blocked: frozenset[str] = frozenset()
    drained: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    said: Mapping[str, NodeRecord] = field(default_factory=dict)
    called: Mapping[str, int] = field(default_factory=dict)
    lends: bool = False


def node_inputs(
    ledger: Ledger, seen: Observations, blocked: frozenset[str] = frozenset()
) -> NodeInputs:
    """Return what the nodes are made of now."""
    holders = ledger.counters.holders
    reserve = bench_reserve.by_node(ledger, seen)
    return NodeInputs(
        inventory=seen.inventory,
        kept=reserve.kept,
        leased=frozenset(ledger.leased),
        clung=frozenset(d.uuid for d in seen.inventory.unusable if d.uuid in holders),
        blocked=blocked,
        drained=seen.drained,
        closed=seen.closed,
        said=seen.nodes,
        called=reserve.called,
        lends=seen.configuration.build.lend_idle,
    )


def nodes(of: NodeInputs) -> tuple[Node, ...]:
    """Return the nodes with the GPUs that train may use, in use by workers or not (R1)."""
    return tuple(node(of, place) for place in of.inventory.places)


def node(of: NodeInputs, place: str) -> Node:
    """Return one place as a node; jobs wait for the GPUs of a machine that is not ready.

    Benches keep whole GPUs: slices have no part in it.
    """
    called, kept = of.called.get(place, 0), of.kept.get(place, 0)
    devices = of.inventory.places[place]
    machine = node_of(place)
    closed, said = machine in of.closed, of.said.get(machine)
    model, facts = devices[0].model, of.inventory.facts.get(machine, UNKNOWN)
    there = (DeviceState.USABLE,) if facts.ready else (DeviceState.USABLE, DeviceState.BROKEN)
    gpus = tuple(
        GpuId(device.uuid)
        for device in devices
        if device.uuid not in of.leased
        and device.uuid not in of.blocked
        and (device.state in there or device.uuid in of.clung)
    )
    links, sockets = hanging(facts, gpus)
    known = (
        (level, facts.labels.get(level.label)) for level in of.inventory.configuration.topology
    )
    return Node(
        name=NodeName(place),
        gpus=gpus,
        kept=called if of.lends else kept,
        called=called,
        lent=kept - called if of.lends else 0,
        on_benches=tuple(GpuId(d.uuid) for d in devices if of.lends and d.uuid in of.leased),
        gpu_model=model,
        cpus=facts.cpus,
        memory_gib=facts.memory_gib,
        labels={"gpu.model": model, **{level.name: value for level, value in known if value}},
        ready=facts.ready and machine not in of.drained and not closed,
        links=links,
        sockets=sockets,
        closed=closings.words(said, closed=closed),
        closes_s=closings.closes_s(said, closed=closed),
        away=sum(d.uuid not in of.leased for d in devices) - len(gpus),
    )


def hanging(facts: NodeFacts, gpus: Sequence[str]) -> tuple[Links, tuple[int, ...]]:
    """Return links and sockets of some GPUs of a machine; nothing where one is not known (R12).

    >>> facts = NodeFacts("n", gpus=("a", "b", "c"), links=((0, 1, 2), (1, 0, 3), (2, 3, 0)))
    >>> hanging(facts, ["c", "a"])
    (((0, 2), (2, 0)), ())
    """
    if not (facts.links or facts.sockets) or not set(gpus) <= set(facts.gpus):
        return (), ()
    at = [facts.gpus.index(gpu) for gpu in gpus]
    links = tuple(tuple(facts.links[a][b] for b in at) for a in at) if facts.links else ()
    sockets = tuple(facts.sockets[a] for a in at) if facts.sockets else ()
    return links, sockets
