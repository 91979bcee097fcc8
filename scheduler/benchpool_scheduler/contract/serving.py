"""Services of users: programs that answer requests, as replicas that run indefinitely."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name, Seconds
from benchpool_scheduler.contract.submission import JobSubmission

SERVICE_NAME = "[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
"""Regular expression of a service's name, which is a part of its address."""

ServiceName = Annotated[str, Meta(pattern=rf"^{SERVICE_NAME}$(?!\n)")]
ReadinessPath = Annotated[str, Meta(pattern=r"^/[!-~]{0,500}$(?!\n)")]
ServicePort = Annotated[int, Meta(ge=1024, le=65535)]


class ServiceAccess(StrEnum):
    """Access to the address of a service, besides the users who may change it.

    ``owner``: no other user. ``project``: members of its project. ``group``: a group of the Hub.
    ``everyone``: all users who are logged in to the Hub.
    """

    OWNER = "owner"
    PROJECT = "project"
    GROUP = "group"
    EVERYONE = "everyone"


class ServiceRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Service requested by a user.

    Each replica runs ``submission``. It listens on a port of its own, which it finds in ``PORT``
    and as ``{port}`` in its command. It listens at the address in ``HOST`` and ``{host}``: the
    loopback on one machine, every address of its pod on a cluster. With ``port``, all replicas
    listen on that port.

    ``keep_prefix``: requests keep the whole path, with the ``{prefix}`` of the service's address.
    ``update``: a service of this name exists and is replaced by this one.
    """

    name: ServiceName
    submission: JobSubmission
    min_replicas: Annotated[
        int, Meta(ge=0, le=64, description="Minimum number of replicas; 0 lets it sleep when idle.")
    ] = 1
    max_replicas: Annotated[
        int, Meta(ge=1, le=64, description="Maximum number of replicas under load.")
    ] = 1
    idle_s: Annotated[
        Seconds, Meta(description="With a minimum of 0: idle time before the service sleeps.")
    ] = 900
    in_flight: Annotated[
        int, Meta(ge=1, le=10_000, description="Concurrent requests of one replica.")
    ] = 8
    access: ServiceAccess = ServiceAccess.OWNER
    group: Name | None = None
    readiness: Annotated[
        ReadinessPath, Meta(description="A replica is ready once this path answers 2xx or 3xx.")
    ] = "/"
    port: Annotated[
        ServicePort | None,
        Meta(description="Port on which the program listens; by default a free one."),
    ] = None
    keep_prefix: Annotated[
        bool, Meta(description="Requests keep the whole path, with that of the service's address.")
    ] = False
    update: bool = False


class ServiceStop(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``stop`` and ``remove``: the reason is shown to the owner of the service."""

    reason: (
        Annotated[str, Meta(max_length=500, description="A short reason, which its owner sees.")]
        | None
    ) = None


class ServicesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Filter of services."""

    all: Annotated[bool, Meta(description="Include services of other users that you may open.")] = (
        False
    )
    limit: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of services.")] = 100


class ServiceState(StrEnum):
    """State of a service.

    ``ready``: it answers requests. ``starting``: replicas are starting. ``asleep``: the next
    request wakes it. ``paused``: its replicas wait for GPUs, or were paused. ``failed``: its
    replicas end unexpectedly, and are restarted after a delay. ``stopped``: a user stopped it.
    """

    READY = "ready"
    STARTING = "starting"
    ASLEEP = "asleep"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"


class ServiceReplica(Struct, frozen=True):
    """Replica of a service: a job of the pool that runs indefinitely.

    Attributes:
        phase: ``waiting``, ``starting``, ``ready`` or ``leaving``.
        text: Why it waits; empty if it does not.
        ready_since: When it became ready; null while it is not.
        in_flight: Number of unanswered requests.
        gpu_activity: Share of the newest sample in which a kernel ran, 0 to 1, mean of its GPUs;
            null without a recent measurement.
        gpu_memory_used_gib: Memory in use on all its GPUs.
    """

    job: str
    version: int
    phase: str
    job_state: str
    text: str
    begun: datetime
    ready_since: datetime | None
    in_flight: int
    gpu_activity: float | None = None
    gpu_memory_used_gib: float | None = None


class ServiceEvent(Struct, frozen=True):
    """Event of a service with its cause: created, asleep, awake, replaced, or a replica ended."""

    at: datetime
    text: str


class ServiceTimes(Struct, frozen=True):
    """Requests at the address of a service in the last minute.

    Attributes:
        p50_ms, p95_ms: Median and 95th percentile of the response time, in milliseconds; null
            without answers.
        last_request: Time of the last request; null for none since the scheduler started.
    """

    requests_per_s: float
    p50_ms: float | None
    p95_ms: float | None
    in_flight: int
    last_request: datetime | None


class PoolService(Struct, frozen=True):
    """Service of the pool.

    Attributes:
        text: State and next step, in a sentence.
        url: Address of the service.
        may_change: Whether the reader may change, stop and remove it. Other readers see no
            replicas.
        version: Number that each change and restart increases.
        failures: Consecutive replicas of this version that ended unexpectedly.
        retry_at: When another replica is started after them; null for immediately.
        events: The last 20 events, newest first.
    """

    id: str
    name: str
    user: str
    project: str
    state: ServiceState
    text: str
    url: str
    may_change: bool
    access: ServiceAccess
    group: str | None
    version: int
    created: datetime
    gpus: int
    min_replicas: int
    max_replicas: int
    wanted: int
    idle_s: int
    in_flight: int
    readiness: str
    port: int | None
    keep_prefix: bool
    failures: int
    retry_at: datetime | None
    times: ServiceTimes
    replicas: list[ServiceReplica]
    events: list[ServiceEvent] = []
