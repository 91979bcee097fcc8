"""Types for decoding the API server's JSON: only the fields that are used."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class RawMeta(Struct, frozen=True, rename="camel"):
    """``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None


class RawResources(Struct, frozen=True):
    """``resources`` of a container."""

    requests: dict[str, str | int] = {}
    limits: dict[str, str | int] = {}


class RawContainer(Struct, frozen=True, rename="camel"):
    """A container of a spec; init containers with ``restartPolicy: Always`` are sidecars."""

    name: str = ""
    resources: RawResources = RawResources()
    restart_policy: str | None = None


class RawGate(Struct, frozen=True):
    """A scheduling gate."""

    name: str = ""


class RawPodSpec(Struct, frozen=True, rename="camel"):
    """``spec`` of a pod."""

    node_name: str = ""
    containers: list[RawContainer] = []
    init_containers: list[RawContainer] = []
    scheduling_gates: list[RawGate] = []
    overhead: dict[str, str | int] = {}
    affinity: dict[str, Any] | None = None


class RawCondition(Struct, frozen=True, rename="camel"):
    """A condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerRunning(Struct, frozen=True, rename="camel"):
    """State of a running container."""

    started_at: str | None = None


class ContainerWaiting(Struct, frozen=True):
    """State of a container that cannot run yet."""

    reason: str = ""
    message: str = ""


class ContainerTerminated(Struct, frozen=True, rename="camel"):
    """State of a container that has ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Struct, frozen=True):
    """At most one of three states."""

    running: ContainerRunning | None = None
    waiting: ContainerWaiting | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(Struct, frozen=True):
    """The state of one container."""

    name: str = ""
    state: ContainerState = ContainerState()


class RawPodStatus(Struct, frozen=True, rename="camel"):
    """``status`` of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = field(default="", name="podIP")
    conditions: list[RawCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class RawPod(Struct, frozen=True):
    """A pod as the API server sends it."""

    metadata: RawMeta
    spec: RawPodSpec = RawPodSpec()
    status: RawPodStatus = RawPodStatus()


class RawTaint(Struct, frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class RawNodeSpec(Struct, frozen=True):
    """``spec`` of a node."""

    unschedulable: bool = False
    taints: list[RawTaint] = []


class RawNodeStatus(Struct, frozen=True):
    """``status`` of a node."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: list[RawCondition] = []


class RawNode(Struct, frozen=True):
    """A node as the API server sends it."""

    metadata: RawMeta
    spec: RawNodeSpec = RawNodeSpec()
    status: RawNodeStatus = RawNodeStatus()


class RawJobStatus(Struct, frozen=True, rename="camel"):
    """``status`` of a Job; ``startTime`` is set when the Job controller first processes it."""

    conditions: list[RawCondition] = []
    start_time: str | None = None
    completed_indexes: str = ""


class RawJob(Struct, frozen=True):
    """A Job as the API server sends it."""

    metadata: RawMeta
    status: RawJobStatus = RawJobStatus()

    @property
    def over(self) -> bool:
        """Whether it will create no more pods."""
        return any(
            one.type in ("Complete", "Failed") and one.status == "True"
            for one in self.status.conditions
        )


class RawEvent(Struct, frozen=True):
    """An event as the API server sends it."""

    reason: str = ""
    message: str = ""
