"""Capacity of nodes regardless of its holders: with idle benches, in total, and its changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, Amounts, exact
from benchpool_scheduler.core.model import Node


def with_idle_benches(node: Node) -> Node:
    """Return a node as if all benches that lend their GPUs were idle (R3)."""
    if not node.on_benches and not node.called:
        return node
    return replace(
        node,
        gpus=(*node.gpus, *node.on_benches),
        kept=node.kept - node.called,
        called=0,
        lent=node.lent + node.called + len(node.on_benches),
        on_benches=(),
        links=(),
        sockets=(),
    )


def differs_in_room(known: Node | None, node: Node) -> bool:
    """Return whether a node differs at most in GPUs, CPUs, memory and what benches keep."""
    if known is None or known.ready != node.ready:
        return False
    if (known.cpus is None, known.memory_gib is None) != (
        node.cpus is None,
        node.memory_gib is None,
    ):
        return False
    return node == replace(
        known,
        gpus=node.gpus,
        cpus=node.cpus,
        memory_gib=node.memory_gib,
        kept=node.kept,
        called=node.called,
        lent=node.lent,
        on_benches=node.on_benches,
        links=node.links,
        sockets=node.sockets,
    )


def total_capacity(nodes: Sequence[Node]) -> tuple[Amounts, tuple[int, int]]:
    """Return the total of all ready nodes, and the numbers without bounds of CPUs and memory."""
    gpus = cpus = memory = 0
    unbounded = [0, 0]
    for node in nodes:
        if not node.ready:
            continue
        gpus += max(0, len(node.gpus) - node.kept) * WHOLE_GPU
        bounds = exact(node.cpus or 0, node.memory_gib or 0)
        cpus += bounds[0]
        memory += bounds[1]
        unbounded[0] += node.cpus is None
        unbounded[1] += node.memory_gib is None
    return Amounts(gpus, cpus, memory), (unbounded[0], unbounded[1])
