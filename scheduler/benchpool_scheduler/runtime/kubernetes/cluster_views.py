"""Pods and nodes as the runtime caches them, reduced from ``raw_objects``: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube.quantities import quantity
from benchpool_scheduler.runtime.kubernetes.raw_objects import (
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    RawCondition,
    RawContainer,
    RawNode,
    RawPod,
    RawPodSpec,
)

INDEX = "batch.kubernetes.io/job-completion-index"
TERMINAL = ("Succeeded", "Failed")
PENDING_REASONS = ("", "ContainerCreating", "PodInitializing")


WORKER = "worker"
"""Name of the container that runs the job's command."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod that gets its GPUs from benchpool.

    Attributes:
        job, attempt, index: The worker's; ``job`` is empty for a notebook.
        user: User of the worker, as the scheduler wrote it; empty for a notebook.
        lease: ID of a notebook's lease, else empty.
        gates: Names of the closed scheduling gates.
        node: Node to which it is bound, or empty. ``slots``: its slots there.
        leaving: The pod is being deleted. ``why_leaving``: the reason that the cluster gives.
        unschedulable: Message of the kube-scheduler while the pod fits on no node.
        waiting: Reason and message of a container that cannot begin. ``preparing``: it is the
            agent's init container.
        running: The worker's container runs; ``since`` is its start as the cluster reports it.
        ended: State of the terminated worker's container.
        setup: State of an init container that failed.
        affinity: Affinity before the pod was pinned to a node; kept while a gate is closed.
        address: IP address of the pod; empty before it has one.
        epoch: Epoch of the leader that wrote the pod last.
        foreign: The pod was created outside benchpool. ``owned``: it has a controller, which
            creates another one when it is gone.
        version: Its resource version; ignored in comparisons.
    """

    name: str
    namespace: str
    uid: str
    job: str
    attempt: int
    index: int
    lease: str
    gates: tuple[str, ...]
    node: str
    slots: tuple[str, ...]
    requests: Mapping[str, float]
    phase: str
    reason: str
    message: str
    leaving: bool
    why_leaving: str | None
    unschedulable: str | None
    waiting: tuple[str, str] | None
    preparing: bool
    running: bool
    since: str | None
    ended: ContainerTerminated | None
    setup: ContainerTerminated | None
    affinity: Mapping[str, Any] | None = None
    user: str = ""
    address: str = ""
    epoch: int = 0
    foreign: bool = False
    owned: bool = False
    version: str = field(default="", compare=False)

    @property
    def over(self) -> bool:
        """Whether it runs nothing and never will."""
        return self.phase in TERMINAL or (self.leaving and not self.node)


def keep_pod(pod: RawPod) -> PodView:
    """Return the cached fields of a pod."""
    meta, status = pod.metadata, pod.status
    labels = meta.labels
    index = labels.get(INDEX) or meta.annotations.get(INDEX) or "0"
    worker = _worker(pod)
    conditions = {one.type: one for one in status.conditions}
    state = _state(status.container_statuses, worker)
    return PodView(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        job=labels.get(names.JOB, "") if labels.get(names.ROLE) == names.ROLE_WORKER else "",
        attempt=_number(labels.get(names.ATTEMPT, "0")),
        index=_number(index),
        lease=labels.get(names.LEASE, ""),
        gates=tuple(gate.name for gate in pod.spec.scheduling_gates),
        node=pod.spec.node_name,
        slots=split_slots(meta.annotations.get(names.SLOTS, "")),
        requests=requests(pod.spec),
        phase=status.phase,
        reason=status.reason,
        message=status.message,
        leaving=meta.deletion_timestamp is not None,
        why_leaving=_message(conditions.get("DisruptionTarget")),
        unschedulable=_unschedulable(conditions.get("PodScheduled")),
        waiting=_waiting(status.init_container_statuses) or _waiting(status.container_statuses),
        preparing=_waiting(status.init_container_statuses) is not None,
        running=state.running is not None,
        since=state.running.started_at if state.running else None,
        ended=state.terminated,
        setup=_failed_setup(status.init_container_statuses),
        affinity=pod.spec.affinity if pod.spec.scheduling_gates else None,
        epoch=_number(meta.annotations.get(names.EPOCH, "0")),
        user=meta.annotations.get(names.USER, ""),
        address=status.pod_ip,
        foreign=labels.get(names.ROLE) == names.ROLE_ADMITTED,
        version=meta.resource_version,
    )


@dataclass(frozen=True, slots=True)
class PodUse:
    """Requests of a pod that gets no GPUs from benchpool, on its node."""

    node: str
    requests: Mapping[str, float]


def keep_use(pod: RawPod) -> PodUse | None:
    """Return the requests of a foreign pod; None if it uses nothing."""
    asked = requests(pod.spec)
    if pod.status.phase in TERMINAL or not pod.spec.node_name or not asked:
        return None
    return PodUse(pod.spec.node_name, asked)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, reduced; quantities in cores, bytes and pieces."""

    name: str
    labels: Mapping[str, str]
    cordoned: bool
    taints: tuple[tuple[str, str, str], ...]
    ready: bool
    why_not_ready: str
    capacity: Mapping[str, float]
    allocatable: Mapping[str, float]


def keep_node(node: RawNode) -> NodeView:
    """Return the cached fields of a node."""
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    return NodeView(
        name=node.metadata.name,
        labels=dict(node.metadata.labels),
        cordoned=node.spec.unschedulable,
        taints=tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints),
        ready=ready is not None and ready.status == "True",
        why_not_ready="" if ready is None else ready.message or ready.reason,
        capacity=_amounts(node.status.capacity),
        allocatable=_amounts(node.status.allocatable),
    )


def requests(spec: RawPodSpec) -> dict[str, float]:
    """Return the requests of a pod: the sum of its containers, or the largest init container."""
    total: dict[str, float] = {}
    for container in spec.containers:
        _add(total, _asked(container))
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            _add(total, _asked(container))
    for container in spec.init_containers:
        for name, amount in _asked(container).items():
            total[name] = max(total.get(name, 0.0), amount)
    _add(total, {name: quantity(str(text)) for name, text in spec.overhead.items()})
    return total


def split_slots(text: str) -> tuple[str, ...]:
    """Return the slots of an annotation.

    >>> split_slots("n0/0,n0/1"), split_slots("")
    (('n0/0', 'n0/1'), ())
    """
    return tuple(one for one in text.split(",") if one)


def _asked(container: RawContainer) -> dict[str, float]:
    asked = {**container.resources.limits, **container.resources.requests}
    return {name: quantity(str(text)) for name, text in asked.items()}


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount


def _amounts(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: quantity(text) for name, text in texts.items()}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _worker(pod: RawPod) -> str:
    known = [container.name for container in pod.spec.containers]
    return WORKER if WORKER in known else known[0] if known else ""


def _state(statuses: Iterable[ContainerStatus], name: str) -> ContainerState:
    return next((one.state for one in statuses if one.name == name), ContainerState())


def _message(condition: RawCondition | None) -> str | None:
    if condition is None or condition.status != "True":
        return None
    return condition.message or condition.reason


def _unschedulable(condition: RawCondition | None) -> str | None:
    if condition is None or condition.status != "False" or condition.reason != "Unschedulable":
        return None
    return condition.message


def _waiting(statuses: Iterable[ContainerStatus]) -> tuple[str, str] | None:
    for one in statuses:
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in PENDING_REASONS:
            return waiting.reason, waiting.message
    return None


def _failed_setup(statuses: Iterable[ContainerStatus]) -> ContainerTerminated | None:
    for one in statuses:
        ended = one.state.terminated
        if ended is not None and ended.exit_code:
            return ended
    return None
