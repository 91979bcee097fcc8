"""Pods and nodes as they are seen: the few fields that matter, decoded and trimmed; pure.

``Pod`` and ``Node`` are what the API server's JSON is decoded into, other fields unread;
``PodSeen``, ``PodUse`` and ``NodeSeen`` are what is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime.kubernetes.quantities import quantity

INDEX = "batch.kubernetes.io/job-completion-index"
TERMINAL = ("Succeeded", "Failed")
PENDING_REASONS = ("", "ContainerCreating", "PodInitializing")

# --------------------------------------------------------------------------- as it comes


class Meta(Struct, frozen=True, rename="camel"):
    """``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None


class Resources(Struct, frozen=True):
    """``resources`` of a container."""

    requests: dict[str, str | int] = {}
    limits: dict[str, str | int] = {}


class Container(Struct, frozen=True, rename="camel"):
    """A container of a spec; init containers with ``restartPolicy: Always`` stay."""

    name: str = ""
    resources: Resources = Resources()
    restart_policy: str | None = None


class Gate(Struct, frozen=True):
    """A scheduling gate."""

    name: str = ""


class PodSpec(Struct, frozen=True, rename="camel"):
    """``spec`` of a pod."""

    node_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    scheduling_gates: list[Gate] = []
    overhead: dict[str, str | int] = {}
    affinity: dict[str, Any] | None = None


class Condition(Struct, frozen=True, rename="camel"):
    """A condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class Running(Struct, frozen=True, rename="camel"):
    """A container runs."""

    started_at: str | None = None


class Waiting(Struct, frozen=True):
    """A container cannot run yet."""

    reason: str = ""
    message: str = ""


class Terminated(Struct, frozen=True, rename="camel"):
    """A container has ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Struct, frozen=True):
    """One of three, or none."""

    running: Running | None = None
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True):
    """The state of one container."""

    name: str = ""
    state: ContainerState = ContainerState()


class PodStatus(Struct, frozen=True, rename="camel"):
    """``status`` of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(Struct, frozen=True):
    """A pod as the API server sends it."""

    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Struct, frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    """``spec`` of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Struct, frozen=True):
    """``status`` of a node."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []


class Node(Struct, frozen=True):
    """A node as the API server sends it."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# --------------------------------------------------------------------------- as it is kept

WORKER = "worker"
"""Name of the container that runs the job's command."""


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod of ours.

    Attributes:
        job, attempt, index: Of a worker; ``job`` is empty for a notebook.
        lease: Id of the lease of a notebook, else empty.
        gates: Names of the gates that are closed.
        node: Where it was bound, empty before. ``slots``: what it was given there.
        leaving: Somebody deletes it. ``why_leaving``: who, where the cluster says so.
        unschedulable: The kube-scheduler's sentence while it finds no room.
        waiting: Reason and sentence of the container that cannot begin.
        running: The worker's container runs; ``since`` as the cluster says it.
        ended: How the worker's container ended; ``begun`` whether it ever began.
        setup: How an init container failed.
        affinity: What was asked for before it was pinned; kept while it is behind a gate.
        epoch: Of the leader that wrote it last.
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
    running: bool
    since: str | None
    ended: Terminated | None
    setup: Terminated | None
    affinity: Mapping[str, Any] | None = None
    epoch: int = 0
    version: str = field(default="", compare=False)

    @property
    def over(self) -> bool:
        """Whether nothing of it runs or will ever run."""
        return self.phase in TERMINAL or (self.leaving and not self.node)


def keep_pod(pod: Pod) -> PodSeen:
    """Trim a pod of ours."""
    meta, status = pod.metadata, pod.status
    labels = meta.labels
    index = labels.get(INDEX) or meta.annotations.get(INDEX) or "0"
    worker = _worker(pod)
    conditions = {one.type: one for one in status.conditions}
    state = _state(status.container_statuses, worker)
    return PodSeen(
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
        waiting=_waiting(status),
        running=state.running is not None,
        since=state.running.started_at if state.running else None,
        ended=state.terminated,
        setup=_failed_setup(status.init_container_statuses),
        affinity=pod.spec.affinity if pod.spec.scheduling_gates else None,
        epoch=_number(meta.annotations.get(names.EPOCH, "0")),
        version=meta.resource_version,
    )


@dataclass(frozen=True, slots=True)
class PodUse:
    """What a pod that is not ours takes of its node."""

    node: str
    requests: Mapping[str, float]


def keep_use(pod: Pod) -> PodUse | None:
    """Trim a pod that is not ours; None when it takes nothing."""
    asked = requests(pod.spec)
    if pod.status.phase in TERMINAL or not pod.spec.node_name or not asked:
        return None
    return PodUse(pod.spec.node_name, asked)


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node, trimmed; quantities in cores, bytes and pieces."""

    name: str
    labels: Mapping[str, str]
    cordoned: bool
    taints: tuple[tuple[str, str, str], ...]
    ready: bool
    why_not_ready: str
    capacity: Mapping[str, float]
    allocatable: Mapping[str, float]


def keep_node(node: Node) -> NodeSeen:
    """Trim a node."""
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    return NodeSeen(
        name=node.metadata.name,
        labels=dict(node.metadata.labels),
        cordoned=node.spec.unschedulable,
        taints=tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints),
        ready=ready is not None and ready.status == "True",
        why_not_ready="" if ready is None else ready.message or ready.reason,
        capacity=_amounts(node.status.capacity),
        allocatable=_amounts(node.status.allocatable),
    )


def requests(spec: PodSpec) -> dict[str, float]:
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


def _asked(container: Container) -> dict[str, float]:
    asked = {**container.resources.limits, **container.resources.requests}
    return {name: quantity(str(text)) for name, text in asked.items()}


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount


def _amounts(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: quantity(text) for name, text in texts.items()}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _worker(pod: Pod) -> str:
    known = [container.name for container in pod.spec.containers]
    return WORKER if WORKER in known else known[0] if known else ""


def _state(statuses: Iterable[ContainerStatus], name: str) -> ContainerState:
    return next((one.state for one in statuses if one.name == name), ContainerState())


def _said(condition: Condition | None) -> str | None:
    if condition is None or condition.status != "True":
        return None
    return condition.message or condition.reason


def _unschedulable(condition: Condition | None) -> str | None:
    if condition is None or condition.status != "False" or condition.reason != "Unschedulable":
        return None
    return condition.message


def _waiting(status: PodStatus) -> tuple[str, str] | None:
    for one in (*status.init_container_statuses, *status.container_statuses):
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in PENDING_REASONS:
            return waiting.reason, waiting.message
    return None


def _failed_setup(statuses: Iterable[ContainerStatus]) -> Terminated | None:
    for one in statuses:
        ended = one.state.terminated
        if ended is not None and ended.exit_code:
            return ended
    return None
