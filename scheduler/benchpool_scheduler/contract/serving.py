"""Services of people: programs that answer requests, as replicas that have no end."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name, Seconds
from benchpool_scheduler.contract.submission import JobSubmission

SERVICE_NAME = "[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
"""What the name of a service looks like: it is a part of its address."""

ServiceName = Annotated[str, Meta(pattern=rf"^{SERVICE_NAME}$(?!\n)")]
ReadinessPath = Annotated[str, Meta(pattern=r"^/[!-~]{0,500}$(?!\n)")]
ServicePort = Annotated[int, Meta(ge=1024, le=65535)]


class ServiceAccess(StrEnum):
    """Who may open the address of a service, besides those who may change it.

    ``owner``: nobody. ``project``: members of its project. ``group``: a group of the Hub.
    ``everyone``: all who are logged in to the Hub.
    """

    OWNER = "owner"
    PROJECT = "project"
    GROUP = "group"
    EVERYONE = "everyone"


class ServiceRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A service as its user asks for it.

    Each replica runs ``submission`` and listens on a port of its own, which it finds in ``PORT``
    and for ``{port}`` in its command, at the address in ``HOST`` and for ``{host}``: the loopback
    of one machine, on a cluster every address of its pod. With ``port`` all listen on that one.
    ``keep_prefix``: it is asked for whole paths, with the ``{prefix}`` of its address before them.
    ``update`` says that a service of this name is there, and is exchanged for this one.
    """

    name: ServiceName
    submission: JobSubmission
    min_replicas: Annotated[
        int, Meta(ge=0, le=64, description="Replicas at least; with 0 it sleeps when idle.")
    ] = 1
    max_replicas: Annotated[
        int, Meta(ge=1, le=64, description="Replicas at most, by the requests in flight.")
    ] = 1
    idle_s: Annotated[
        Seconds, Meta(description="With 0 replicas at least: it sleeps after so long unasked.")
    ] = 900
    in_flight: Annotated[
        int, Meta(ge=1, le=10_000, description="Requests that one replica answers at a time.")
    ] = 8
    access: ServiceAccess = ServiceAccess.OWNER
    group: Name | None = None
    readiness: Annotated[
        ReadinessPath, Meta(description="A replica is ready once this path answers 2xx or 3xx.")
    ] = "/"
    port: Annotated[
        ServicePort | None,
        Meta(description="The one on which the program listens; a free one without it."),
    ] = None
    keep_prefix: Annotated[
        bool, Meta(description="The program is asked for whole paths, with its address's first.")
    ] = False
    update: bool = False


class ServiceStop(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``stop`` and ``remove``: the reason is shown to the owner of the service."""

    reason: (
        Annotated[str, Meta(max_length=500, description="A short reason, which its owner sees.")]
        | None
    ) = None


class ServicesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which services are listed."""

    all: Annotated[bool, Meta(description="Also those of others that you may open.")] = False
    limit: Annotated[int, Meta(ge=1, le=1000, description="At most so many.")] = 100


class ServiceState(StrEnum):
    """How a service is.

    ``ready``: it answers. ``starting``: it will. ``asleep``: the next request wakes it.
    ``paused``: its replicas wait for GPUs, or were paused. ``failed``: its replicas end by
    themselves, and are begun again after a pause. ``stopped``: somebody stopped it.
    """

    READY = "ready"
    STARTING = "starting"
    ASLEEP = "asleep"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"


class ServiceReplica(Struct, frozen=True):
    """A replica: a job of the pool that has no end.

    Attributes:
        phase: ``waiting``, ``starting``, ``ready`` or ``leaving``.
        text: Why it waits; empty where it does not.
        ready_since: Since when it answers; null while it does not.
        in_flight: Requests that it has not answered yet.
        gpu_activity: Share of the newest sample in which a kernel ran, 0 to 1, mean of its GPUs;
            null where nothing was measured just now. ``gpu_memory_used_gib``: of all its GPUs.
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
    """What became of a service, and why: it began, slept, woke, was exchanged, a replica ended."""

    at: datetime
    text: str


class ServiceTimes(Struct, frozen=True):
    """What came in at the address of a service, of the last minute.

    Attributes:
        p50_ms, p95_ms: Half, and nineteen of twenty, were answered within so many milliseconds;
            null where none was.
        last_request: When the last came; null for none since the scheduler started.
    """

    requests_per_s: float
    p50_ms: float | None
    p95_ms: float | None
    in_flight: int
    last_request: datetime | None


class PoolService(Struct, frozen=True):
    """A service.

    Attributes:
        text: How it is and what happens next, in a sentence.
        url: Its address.
        may_change: Whether the reader may change, stop and remove it. Others see no replicas.
        version: Counted up by each change and restart.
        failures: So many replicas of this version ended by themselves, one after the other.
        retry_at: When another is begun after those; null for at once.
        events: What became of it, newest first: the last 20.
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
