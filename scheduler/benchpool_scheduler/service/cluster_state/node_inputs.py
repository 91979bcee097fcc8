"""Nodes for the core, and the inputs from which they are built."""

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
    """All inputs of the nodes; equal inputs give equal nodes.

    Attributes:
        kept: GPUs that nodes keep for benches (R3). ``called``: GPUs among them that were lent and
            are reclaimed for a waiting server. ``lends``: preemptible jobs may use the rest of
            them.
        leased: GPUs that benches hold. ``clung``: GPUs that are not usable, but held by workers.
        drained: Nodes that take no starts because of a fault. ``closed``: nodes that an
            administrator closed. ``records``: records of nodes, closed or not.
        blocked: GPUs of quarantined jobs.
    """

    inventory: Inventory
    kept: Mapping[str, int]
    leased: frozenset[str]
    clung: frozenset[str]
    blocked: frozenset[str] = frozenset()
    drained: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    records: Mapping[str, NodeRecord] = field(default_factory=dict)
    called: Mapping[str, int] = field(default_factory=dict)
    lends: bool = False


def node_inputs(
    ledger: Ledger, seen: Observations, blocked: frozenset[str] = frozenset()
) -> NodeInputs:
    """Return the present inputs of the nodes."""
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
        records=seen.nodes,
        called=reserve.called,
        lends=seen.configuration.build.lend_idle,
    )


def nodes(of: NodeInputs) -> tuple[Node, ...]:
    """Return the nodes with the GPUs that training may use, in use by workers or not (R1)."""
    return tuple(node(of, place) for place in of.inventory.places)


def node(of: NodeInputs, place: str) -> Node:
    """Return one place as a node. Jobs may wait for the GPUs of a node that is not ready.

    Only whole GPUs are kept for benches, never slices.
    """
    called, kept = of.called.get(place, 0), of.kept.get(place, 0)
    devices = of.inventory.places[place]
    machine = node_of(place)
    closed, record = machine in of.closed, of.records.get(machine)
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
        closed=closings.words(record, closed=closed),
        closes_s=closings.closes_s(record, closed=closed),
        away=sum(d.uuid not in of.leased for d in devices) - len(gpus),
    )


def hanging(facts: NodeFacts, gpus: Sequence[str]) -> tuple[Links, tuple[int, ...]]:
    """Return links and sockets of the given GPUs, or empty tuples if one GPU is unknown (R12).

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
