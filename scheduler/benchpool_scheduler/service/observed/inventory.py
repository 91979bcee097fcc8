"""Nodes with their GPUs and purposes, regardless of holders.

An inventory is built once for a set of GPUs and a configuration, so that submissions, requests and
passes need not scan all GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.configuration import Configuration, NodePool
from benchpool_scheduler.runtime import Device, DeviceState, NodeFacts

Purpose = Literal["build", "train"]

WHOLE = Device("", 0, "", "", None, simulated=False).resource

UNKNOWN = NodeFacts("")
"""Facts of a node without any report."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The nodes of a pool.

    Attributes:
        devices: All GPUs as the runtime reported them. ``configuration``: the one then in force.
        nodes: The GPUs of each node by the node's name, both in order.
        pools: The name of each node's pool, for nodes that belong to one.
        train: Names of the nodes that serve training. ``build``: names of the nodes for benches.
        places: The GPUs of each node that serves training, grouped by kind: slices of a GPU are
            GPUs of their own (R1). ``slices``: the names of places with slices.
        by_uuid: Every GPU by its UUID.
        facts: Facts of the nodes, by name; ``reported`` as the runtime reported them.
        unusable: GPUs that cannot be allocated now: foreign or broken ones (R1).
    """

    devices: tuple[Device, ...]
    configuration: Configuration
    nodes: Mapping[str, tuple[Device, ...]]
    pools: Mapping[str, str]
    train: frozenset[str]
    build: frozenset[str]
    places: Mapping[str, tuple[Device, ...]]
    slices: frozenset[str]
    by_uuid: Mapping[str, Device]
    facts: Mapping[str, NodeFacts]
    reported: tuple[NodeFacts, ...]
    unusable: tuple[Device, ...]
    train_gpus: int
    build_gpus: int
    largest_train_node: int

    @classmethod
    def of(
        cls,
        devices: tuple[Device, ...],
        configuration: Configuration,
        reported: tuple[NodeFacts, ...] = (),
    ) -> Inventory:
        """Group these GPUs by node and purpose."""
        nodes = by_node(devices)
        facts = {node.name: node for node in reported}
        pools = {
            name: pool_of(configuration, gpus, facts.get(name)) for name, gpus in nodes.items()
        }
        train = frozenset(name for name, pool in pools.items() if pool and "train" in pool.purpose)
        build = frozenset(name for name, pool in pools.items() if pool and "build" in pool.purpose)
        places = _places(nodes, train)
        return cls(
            devices=devices,
            configuration=configuration,
            nodes=nodes,
            pools={name: pool.name for name, pool in pools.items() if pool},
            train=train,
            build=build,
            places=places,
            slices=frozenset(name for name in places if name not in nodes),
            by_uuid={device.uuid: device for device in devices},
            facts=facts,
            reported=reported,
            unusable=tuple(d for d in devices if d.state is not DeviceState.USABLE),
            train_gpus=sum(len(nodes[name]) for name in train),
            build_gpus=sum(len(nodes[name]) for name in build),
            largest_train_node=max((len(nodes[name]) for name in train), default=0),
        )


def by_node(devices: Iterable[Device]) -> Mapping[str, tuple[Device, ...]]:
    """Return the GPUs of each node in the order of their index, nodes by name."""
    found: dict[str, list[Device]] = {}
    for device in sorted(devices, key=lambda d: (d.node, d.index)):
        found.setdefault(device.node, []).append(device)
    return {name: tuple(gpus) for name, gpus in found.items()}


def _places(
    nodes: Mapping[str, tuple[Device, ...]], serving: frozenset[str]
) -> Mapping[str, tuple[Device, ...]]:
    found: dict[str, tuple[Device, ...]] = {}
    for name, devices in nodes.items():
        if name not in serving:
            continue
        if all(device.resource == WHOLE for device in devices):
            found[name] = devices
            continue
        for resource in sorted({device.resource for device in devices}):
            kind = tuple(device for device in devices if device.resource == resource)
            found[place_name(name, resource)] = kind
    return found


def place_name(node: str, resource: str) -> str:
    """Return the core's name for the GPUs of one kind on a node.

    >>> place_name("n", "nvidia.com/gpu"), place_name("n", "nvidia.com/mig-1g.10gb")
    ('n', 'n/mig-1g.10gb')
    """
    return node if resource == WHOLE else f"{node}/{resource.partition('/')[2]}"


def place_of(node: str, gpus: Sequence[str]) -> str:
    """Return the place of a worker, from the names of its GPUs.

    >>> place_of("n", ["n/0", "n/1"]), place_of("n", ["n/mig-1g.10gb/0"]), place_of("n", ["GPU-7"])
    ('n', 'n/mig-1g.10gb', 'n')
    """
    first = gpus[0] if gpus else ""
    return first.rpartition("/")[0] if first.startswith(f"{node}/") else node


def node_of(place: str) -> str:
    """Return the node of a place. Node names contain no slash.

    >>> node_of("n/mig-1g.10gb"), node_of("n")
    ('n', 'n')
    """
    return place.partition("/")[0]


def pool_of(
    configuration: Configuration, devices: Sequence[Device], facts: NodeFacts | None = None
) -> NodePool | None:
    """Return the pool of a node: the first whose labels the node has, or None.

    In addition to its own labels, each node has ``gpu.model`` and ``node``, its name.
    """
    labels = {} if facts is None else facts.labels
    own = {"gpu.model": devices[0].model, "node": devices[0].node}
    for pool in configuration.pools:
        if all(own.get(key, labels.get(key)) == value for key, value in pool.nodes.items()):
            return pool
    return None
