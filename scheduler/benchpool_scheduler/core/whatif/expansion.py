"""Expansion of the pool by more GPUs, for what-if."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from typing import TypeVar

from benchpool_scheduler.core.model import GpuId, Node, NodeName, Snapshot

NODE_GPUS = 8
"""Default number of GPUs of an added node, for a pool without nodes."""

Value = TypeVar("Value")

DOMAIN = "what-if"
"""Value of every topology label of an added node."""


def with_nodes(
    snapshot: Snapshot, gpus: int, model: str | None = None, per_node: int | None = None
) -> Snapshot:
    """Return the pool with ``gpus`` more GPUs, on new nodes.

    A new node is like the first node of that model and size. Without such a node it has no bounds
    of CPUs and memory. At each topology level the new nodes form a domain of their own, since their
    racks are unknown.

    Args:
        gpus: Number of GPUs to add. The last node holds the rest.
        model: GPU model. By default the most frequent model of the pool.
        per_node: GPUs per node. By default the most frequent size of the pool, else 8.

    >>> [len(node.gpus) for node in with_nodes(Snapshot((), (), ()), 11).nodes]
    [8, 3]
    """
    nodes = snapshot.nodes
    if model is None:
        model = _most(((node.gpu_model, len(node.gpus)) for node in nodes), None)
    of_model = [node for node in nodes if node.gpu_model == model and node.gpus]
    if per_node is None:
        sizes = [len(node.gpus) for node in of_model or nodes]
        per_node = _most(((size, size) for size in sizes if size), NODE_GPUS)
    alike = [node for node in of_model if len(node.gpus) == per_node]
    pattern = alike[0] if alike else Node(NodeName(""), (), gpu_model=model)
    pattern = replace(pattern, kept=0, ready=True, labels=_labels(snapshot, model))
    sizes = [per_node] * (gpus // per_node) + [gpus % per_node] * (gpus % per_node > 0)
    names = islice(_free_names(snapshot), len(sizes))
    return replace(snapshot, nodes=(*nodes, *map(_node, [pattern] * len(sizes), names, sizes)))


def _labels(snapshot: Snapshot, model: str | None) -> dict[str, str]:
    known = {} if model is None else {"gpu.model": model}
    return known | dict.fromkeys(snapshot.topology, DOMAIN)


def _node(pattern: Node, name: NodeName, size: int) -> Node:
    whole = size == len(pattern.gpus)
    return replace(
        pattern,
        name=name,
        gpus=tuple(GpuId(f"{name}/{index}") for index in range(size)),
        links=pattern.links if whole else (),
        sockets=pattern.sockets if whole else (),
    )


def _free_names(snapshot: Snapshot) -> Iterator[NodeName]:
    taken = {node.name for node in snapshot.nodes}
    names = (NodeName(f"what-if-{number}") for number in count(1))
    return (name for name in names if name not in taken)


def _most(counted: Iterable[tuple[Value, int]], default: Value) -> Value:
    """Return the value with the most GPUs, the first on a tie."""
    counts: Counter[Value] = Counter()
    for value, gpus in counted:
        counts[value] += gpus
    return counts.most_common(1)[0][0] if counts else default
