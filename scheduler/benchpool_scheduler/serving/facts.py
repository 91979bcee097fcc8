"""What a decision about a service is given, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.serving.states import ReplicaPhase, ServiceMode


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What was asked for.

    Attributes:
        least, most: Replicas while it is awake; ``least`` 0 lets it sleep.
        idle_s: With ``least`` 0 it sleeps when nobody has asked it anything for so long, seconds.
        per_replica: Requests in flight that one replica is meant to answer at a time.
        version: The newest; replicas of older ones are exchanged.
        shares_port: Replicas listen on one fixed port, so that never two can run side by side.
    """

    least: int = 1
    most: int = 1
    idle_s: float = 900.0
    per_replica: int = 8
    version: int = 1
    shares_port: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """A replica as it is now.

    Attributes:
        job: The id of its job.
        ready_since: Since when it answers, epoch seconds; None while it does not.
        leaving_since: Since when it gets no new requests; None while it does.
        in_flight: Requests that it has not answered yet.
        lacks_room: It waits, and not for jobs that are already leaving: the pool or the quota has
            no room for it.
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
        at: When. ``ready_s``: how long it had answered, 0 for not at all.
    """

    at: float
    version: int
    ready_s: float


@dataclass(frozen=True, slots=True)
class ServiceTraffic:
    """What came in.

    Attributes:
        in_flight: Requests of all replicas, and those that wait for one.
        last: When the last request came; None for none since ``watched``.
        watched: Since when requests are counted.
    """

    in_flight: int = 0
    last: float | None = None
    watched: float = 0.0


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """A service as it is now.

    Attributes:
        mode_since: Since when it is in this mode.
        wanted: So many replicas it was last meant to have; None where that is not known.
        enough_since: Since when fewer would be enough; None while they would not.
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
"""So many failures are kept: more would not make a pause longer."""


@dataclass(frozen=True, slots=True)
class ServiceActs:
    """What is to be done.

    Attributes:
        begin: So many replicas of the newest version are begun.
        leave: Jobs of replicas that get no new requests from now on.
        stop: Jobs of leaving replicas that are ended now.
        look_at: When time alone may change something; None for never.
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
        """Whether nothing is done to any replica."""
        return not (self.begin or self.leave or self.stop)
