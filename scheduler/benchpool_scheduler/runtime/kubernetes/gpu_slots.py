"""GPUs computed from nodes and pods: pure.

The kubelet chooses devices when a pod begins. Therefore a GPU is a *slot* here: ``node/0`` and so
on, as many as the node has. A pod of benchpool holds the slots that its annotation names. The
remaining slots of a node are assigned by count, from the highest index down, since all are alike.
First the GPUs that the node reports as lost are broken, then the GPUs that foreign pods request are
foreign (R1). A slot of benchpool never becomes one of these. On a node that accepts no worker, all
slots are broken, independent of their holders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE, slot
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView, PodUse, PodView

Counted = Mapping[tuple[str, str], int]
"""Number of pieces by node and resource."""

SCHEDULING = ("NoSchedule", "NoExecute")
CORDON = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class GpuHolders:
    """Holders of the GPUs.

    Attributes:
        ours: Slots that benchpool's pods hold, or that were chosen for pods to be created.
        foreign: Number of GPUs that other pods request.
    """

    ours: frozenset[str] = frozenset()
    foreign: Counted = field(default_factory=dict)

    @classmethod
    def of(
        cls, pods: Iterable[PodView], others: Iterable[PodUse], chosen: Iterable[str]
    ) -> GpuHolders:
        """Count the GPUs; a bound pod of benchpool without slots counts as foreign."""
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
    """Return why no worker may be started on a node, or None."""
    if not node.ready:
        detail = f": {node.why_not_ready}" if node.why_not_ready else ""
        return f"{node.name} is not ready{detail}"
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
    """Count of a node's GPUs that ignores short dips.

    A kubelet or device plugin that restarts reports none for about 5 s, while running pods keep
    their GPUs. A lower count is accepted after a delay, a higher count at once.

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
        """Whether a count is kept that is no longer reported."""
        return any(since is not None for _, since in self._known.values())

    def count(self, of: tuple[str, ...], reported: int, now: float) -> int:
        """Return the accepted count; ``now`` is in seconds of a monotonic clock."""
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
        """Forget nodes that are gone."""
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
        refused: Reasons of nodes that recently rejected a worker's pod, by node.
    """
    found: list[Device] = []
    for node in sorted(nodes, key=lambda one: one.name):
        refusal = (refused or {}).get(node.name)
        out = why_not(node, tolerations)
        resources = sorted(name for name in node.capacity if name.startswith(prefixes))
        for resource in resources:
            total = steady.count((node.name, resource), int(node.capacity[resource]), now)
            usable = steady.count(
                (node.name, resource, "allocatable"),
                int(node.allocatable.get(resource, 0.0)),
                now,
            )
            found += _of_resource(node, resource, total, min(usable, total), held, (out, refusal))
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
            state, note = DeviceState.FOREIGN, "in use by a pod that benchpool did not create"
        elif refused is not None and name not in held.ours:
            state, note = DeviceState.BROKEN, refused
        found.append(Device(name, index, model, node.name, memory, False, state, note, resource))
    return found


def _model(node: NodeView, resource: str) -> str:
    """Return the model in the label of GPU feature discovery, without the vendor's name."""
    product = node.labels.get(f"{resource}.product") or node.labels.get(f"{GPU_RESOURCE}.product")
    model = (product or "unknown model").removeprefix("NVIDIA-").removeprefix("Tesla-")
    slice_ = resource.partition("/")[2]
    if slice_.startswith("mig-") and "mig-" not in model.lower():
        model = f"{model}-MIG-{slice_.removeprefix('mig-')}"
    return model


def _memory(node: NodeView, resource: str) -> int | None:
    text = node.labels.get(f"{resource}.memory", "")
    return int(text) if text.isdecimal() else None
