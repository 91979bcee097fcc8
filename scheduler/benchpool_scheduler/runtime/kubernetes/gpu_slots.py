"""From nodes and pods to GPUs: pure.

The kubelet chooses devices when a pod begins, so that a GPU is a *slot* here: ``node/0`` and so
on, as many as the node has. A pod of ours holds the slots that its annotation names. Of the
others, as many as foreign pods ask for are foreign (R1), and as many as the node says are lost are
broken: the highest ones, since all are alike. A slot that is ours never becomes one of these. On a
node where nothing of ours may be started all are broken, whoever holds them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE, slot
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView, PodUse, PodView

Counted = Mapping[tuple[str, str], int]
"""Pieces of a resource by node and resource."""

SCHEDULING = ("NoSchedule", "NoExecute")
CORDON = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class GpuHolders:
    """Whose the GPUs are.

    Attributes:
        ours: Slots that our pods hold, or that were chosen for pods that come to be.
        foreign: GPUs that other pods ask for.
    """

    ours: frozenset[str] = frozenset()
    foreign: Counted = field(default_factory=dict)

    @classmethod
    def of(
        cls, pods: Iterable[PodView], others: Iterable[PodUse], chosen: Iterable[str]
    ) -> GpuHolders:
        """Count. A pod of ours without slots, that somebody else has bound, counts as foreign."""
        ours = set(chosen)
        foreign: dict[tuple[str, str], int] = defaultdict(int)
        for pod in pods:
            if not pod.node or pod.over:
                continue
            if pod.slots:
                ours.update(pod.slots)
            else:
                _count(foreign, pod.node, pod.requests)
        for use in others:
            _count(foreign, use.node, use.requests)
        return cls(frozenset(ours), foreign)


def _count(into: dict[tuple[str, str], int], node: str, requests: Mapping[str, float]) -> None:
    for resource, amount in requests.items():
        into[node, resource] += int(amount)


def why_not(node: NodeView, tolerations: Sequence[Mapping[str, str]]) -> str | None:
    """Return why nothing of ours may be started on a node, None when it may."""
    if not node.ready:
        said = f": {node.why_not_ready}" if node.why_not_ready else ""
        return f"{node.name} is not ready{said}"
    if node.cordoned:
        return f"{node.name} is cordoned"
    for key, value, effect in node.taints:
        if effect in SCHEDULING and not any(_bears(t, key, value, effect) for t in tolerations):
            return f"{node.name} has the taint {key}{'=' + value if value else ''}:{effect}"
    return None


def _bears(toleration: Mapping[str, str], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("key") not in (None, "", key):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == value


class SteadyCount:
    """Keeps the count of a node's GPUs over a dip.

    A kubelet or device plugin that starts again reports none for about 5 s, while running pods keep
    theirs. A lower count is believed once it has been there for a while; a higher one at once.

    >>> steady = SteadyCount(15.0)
    >>> steady.count(("n", "gpu"), 8, 0.0), steady.count(("n", "gpu"), 0, 1.0)
    (8, 8)
    >>> steady.count(("n", "gpu"), 8, 6.0), steady.count(("n", "gpu"), 0, 7.0)
    (8, 8)
    >>> steady.count(("n", "gpu"), 0, 23.0)
    0
    """

    def __init__(self, dip_s: float) -> None:
        self._dip_s = dip_s
        self._known: dict[tuple[str, ...], tuple[int, float | None]] = {}

    @property
    def in_doubt(self) -> bool:
        """Whether some count is kept that is no longer reported."""
        return any(since is not None for _, since in self._known.values())

    def count(self, of: tuple[str, ...], reported: int, now: float) -> int:
        """Return the count to go by; ``now`` in seconds of any clock that never steps."""
        known, since = self._known.get(of, (reported, None))
        if reported >= known:
            self._known[of] = (reported, None)
            return reported
        since = now if since is None else since
        if now - since < self._dip_s:
            self._known[of] = (known, since)
            return known
        self._known[of] = (reported, None)
        return reported

    def forget(self, nodes: Iterable[str]) -> None:
        """Keep nothing of nodes that are gone."""
        gone = set(nodes)
        for key in [key for key in self._known if key[0] in gone]:
            del self._known[key]


def devices(
    nodes: Iterable[NodeView],
    held: GpuHolders,
    steady: SteadyCount,
    now: float,
    prefixes: tuple[str, ...] = (GPU_RESOURCE,),
    refused: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> tuple[Device, ...]:
    """Return all GPUs, by node and index.

    Args:
        refused: Nodes that turned away a pod of ours lately, with what they said.
    """
    found: list[Device] = []
    for node in sorted(nodes, key=lambda one: one.name):
        said = (refused or {}).get(node.name)
        out = why_not(node, tolerations)
        resources = sorted(name for name in node.capacity if name.startswith(prefixes))
        for resource in resources:
            total = steady.count((node.name, resource), int(node.capacity[resource]), now)
            usable = steady.count(
                (node.name, resource, "allocatable"),
                int(node.allocatable.get(resource, 0.0)),
                now,
            )
            found += _of_resource(node, resource, total, min(usable, total), held, (out, said))
    return tuple(found)


def _of_resource(
    node: NodeView,
    resource: str,
    total: int,
    usable: int,
    held: GpuHolders,
    notes: tuple[str | None, str | None],
) -> list[Device]:
    out, refused = notes
    model, memory = _model(node, resource), _memory(node, resource)
    slots = [slot(node.name, index, resource) for index in range(total)]
    rest = [name for name in reversed(slots) if name not in held.ours]
    lost = total - usable
    foreign = held.foreign.get((node.name, resource), 0)
    broken = set(rest[:lost])
    taken = set(rest[lost : lost + foreign])
    found: list[Device] = []
    for index, name in enumerate(slots):
        state, note = DeviceState.USABLE, None
        if out is not None:
            state, note = DeviceState.BROKEN, out
        elif name in broken:
            state = DeviceState.BROKEN
            note = f"{node.name} reports {usable} of its {total} GPUs as healthy"
        elif name in taken:
            state, note = DeviceState.FOREIGN, "a pod that is not ours uses it"
        elif refused is not None and name not in held.ours:
            state, note = DeviceState.BROKEN, refused
        found.append(Device(name, index, model, node.name, memory, False, state, note, resource))
    return found


def _model(node: NodeView, resource: str) -> str:
    """Return the model as GPU feature discovery labels it, without the maker's name."""
    product = node.labels.get(f"{resource}.product") or node.labels.get(f"{GPU_RESOURCE}.product")
    model = (product or "unknown model").removeprefix("NVIDIA-").removeprefix("Tesla-")
    slice_ = resource.partition("/")[2]
    if slice_.startswith("mig-") and "mig-" not in model.lower():
        model = f"{model}-MIG-{slice_.removeprefix('mig-')}"
    return model


def _memory(node: NodeView, resource: str) -> int | None:
    text = node.labels.get(f"{resource}.memory", "")
    return int(text) if text.isdecimal() else None
