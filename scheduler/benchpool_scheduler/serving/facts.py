"""Input and output of a decision about a service."""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.serving.states import ReplicaPhase, ServiceMode


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """Requested form of a service.

    Attributes:
        least, most: Number of replicas while it is awake; ``least`` 0 lets it sleep.
        idle_s: Time without requests after which a service with ``least`` 0 sleeps, in seconds.
        per_replica: Target number of requests in flight per replica.
        version: The newest; replicas of older ones are replaced.
        shares_port: Replicas listen on one fixed port, so that only one can run at a time.
    """

    least: int = 1
    most: int = 1
    idle_s: float = 900.0
    per_replica: int = 8
    version: int = 1
    shares_port: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """Current state of a replica.

    Attributes:
        job: ID of its job.
        ready_since: Since when it answers, epoch seconds; None while it does not.
        leaving_since: Since when it gets no new requests; None while it does.
        in_flight: Number of its unanswered requests.
        lacks_room: It waits because the pool or the quota has no room, and no leaving job will
            free it.
    """

    job: str
    version: int
    phase: ReplicaPhase
    ready_since: float | None = None
    leaving_since: float | None = None
    in_flight: int = 0
    lacks_room: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaFailure:
    """A replica that ended by itself.

    Attributes:
        at: When it ended. ``ready_s``: how long it had answered; 0 if it never did.
    """

    at: float
    version: int
    ready_s: float


@dataclass(frozen=True, slots=True)
class ServiceTraffic:
    """Requests to a service.

    Attributes:
        in_flight: Requests of all replicas, and requests that wait for a replica.
        last: Time of the last request that a replica got; None if there was none since ``watched``.
        unserved: Time of the last request that found no ready replica; None if there was none.
        watched: Since when requests are counted.
    """

    in_flight: int = 0
    last: float | None = None
    unserved: float | None = None
    watched: float = 0.0


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """Current state of a service.

    Attributes:
        mode_since: Since when it is in this mode.
        wanted: Last desired number of replicas; None if unknown.
        enough_since: Since when fewer replicas would be enough; None while they would not.
        failures: Replicas that ended by themselves, newest first; at most ``MOST_FAILURES``.
    """

    plan: ServicePlan
    mode: ServiceMode
    mode_since: float
    replicas: tuple[ReplicaFacts, ...] = ()
    wanted: int | None = None
    enough_since: float | None = None
    failures: tuple[ReplicaFailure, ...] = ()


MOST_FAILURES = 12
"""Maximum number of failures kept; more would not lengthen the delay."""


@dataclass(frozen=True, slots=True)
class ServiceActs:
    """Actions for a service.

    Attributes:
        begin: Number of replicas of the newest version to begin.
        leave: Jobs of replicas that get no new requests from now on.
        stop: Jobs of leaving replicas that are ended now.
        look_at: Time of the next check without an event; None for never.
    """

    mode: ServiceMode
    wanted: int
    enough_since: float | None
    begin: int = 0
    leave: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    look_at: float | None = None

    @property
    def nothing(self) -> bool:
        """Whether no replica begins, leaves or ends."""
        return not (self.begin or self.leave or self.stop)
