"""Facts about nodes besides their GPUs: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from benchpool_scheduler.runtime import NodeFacts
from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView, PodUse
from benchpool_scheduler.runtime.kubernetes.gpu_slots import SCHEDULING, why_not
from benchpool_scheduler.runtime.kubernetes.written_amounts import GIB


def node_facts(
    nodes: Iterable[NodeView],
    others: Iterable[PodUse],
    tolerations: Sequence[Mapping[str, str]],
) -> tuple[NodeFacts, ...]:
    """Return the nodes by name, less the requests of foreign pods."""
    cpus: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    for use in others:
        cpus[use.node] += use.requests.get("cpu", 0.0)
        memory[use.node] += use.requests.get("memory", 0.0)
    found = []
    for node in sorted(nodes, key=lambda one: one.name):
        note = why_not(node, tolerations)
        found.append(
            NodeFacts(
                name=node.name,
                labels=node.labels,
                taints=tuple(taint for taint in node.taints if taint[2] in SCHEDULING),
                cpus=_left(node.allocatable.get("cpu"), cpus[node.name]),
                memory_gib=_left(node.allocatable.get("memory"), memory[node.name], GIB),
                ready=note is None,
                note=note,
            )
        )
    return tuple(found)


def _left(has: float | None, taken: float, unit: float = 1.0) -> float | None:
    return None if has is None else max(0.0, has - taken) / unit
