"""Pods and nodes as the runtime keeps them, trimmed from ``raw_objects``; pure."""

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
    """A pod of ours.

    Attributes:
        job, attempt, index: Of a worker; ``job`` is empty for a notebook.
        user: Whose worker it is, as the scheduler wrote it; empty for a notebook.
        lease: Id of the lease of a notebook, else empty.
        gates: Names of the gates that are closed.
        node: Where it was bound, empty before. ``slots``: what it was given there.
        leaving: Somebody deletes it. ``why_leaving``: who, where the cluster says so.
        unschedulable: The kube-scheduler's sentence while it finds no room.
        waiting: Reason and sentence of the container that cannot begin. ``preparing``: it is the
            agent's, which comes before the worker's.
        running: The worker's container runs; ``since`` as the cluster says it.
        ended: How the worker's container ended; ``begun`` whether it ever began.
        setup: How an init container failed.
        affinity: What was asked for before it was pinned; kept while it is behind a gate.
        address: Its own in the cluster's network; empty before it has one.
        epoch: Of the leader that wrote it last.
        foreign: Others made it, and it gets its GPUs from us; ``owned``: by a controller, which
            makes another when it is gone.
        version: Its resource version; pods that differ in nothing else are alike.
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
        """Whether nothing of it runs or will ever run."""
        return self.phase in TERMINAL or (self.leaving and not self.node)


def keep_pod(pod: RawPod) -> PodView:
    """Trim a pod of ours."""
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
        why_leaving=_said(conditions.get("DisruptionTarget")),
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
    """What a pod that is not ours takes of its node."""

    node: str
    requests: Mapping[str, float]


def keep_use(pod: RawPod) -> PodUse | None:
    """Trim a pod that is not ours; None when it takes nothing."""
    asked = requests(pod.spec)
    if pod.status.phase in TERMINAL or not pod.spec.node_name or not asked:
        return None
    return PodUse(pod.spec.node_name, asked)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, trimmed; quantities in cores, bytes and pieces."""

    name: str
    labels: Mapping[str, str]
    cordoned: bool
    taints: tuple[tuple[str, str, str], ...]
    ready: bool
    why_not_ready: str
    capacity: Mapping[str, float]
    allocatable: Mapping[str, float]


def keep_node(node: RawNode) -> NodeView:
    """Trim a node."""
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
    """Return what a pod takes: its containers together, or the largest init container."""
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


def _said(condition: RawCondition | None) -> str | None:
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
