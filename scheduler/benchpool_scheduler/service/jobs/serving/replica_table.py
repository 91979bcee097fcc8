"""State of a service for decisions: its record, its jobs, their readiness and traffic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.contract.jobs import Reason
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.service.jobs.serving.readiness import ReadinessWatch
from benchpool_scheduler.service.jobs.serving.replica_network import ReplicaNetwork
from benchpool_scheduler.service.jobs.serving.traffic import RequestCounts
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.serving.facts import (
    ReplicaFacts,
    ReplicaFailure,
    ServicePlan,
    ServiceStanding,
    ServiceTraffic,
)
from benchpool_scheduler.serving.states import ReplicaPhase, ServiceMode, phase_of
from benchpool_scheduler.store.records import JobRecord
from benchpool_scheduler.store.service_files import ReplicaRecord, ServiceRecord

COMING = frozenset(
    {
        ReasonCode.NEXT_PASS,
        ReasonCode.WAITING_FOR_VICTIMS,
        ReasonCode.CLAIM_DELAYED,
        ReasonCode.VICTIMS_PROTECTED,
        ReasonCode.LOST,
    }
)
"""Wait reasons of jobs that start soon: GPUs are free, or victims are leaving."""


@dataclass(slots=True)
class ScaleMemory:
    """Last target number of replicas of a service; not persistent."""

    wanted: int | None = None
    enough_since: float | None = None


class ReplicaTable:
    """Reader of the state of replicas.

    Attributes:
        counts: Request counts; replaced when the service addresses are set up.

    Args:
        view: Returns the public view of a job.
        network: Addresses on which replicas listen and are reached.
    """

    def __init__(
        self,
        ledger: Ledger,
        watch: ReadinessWatch,
        counts: RequestCounts,
        view: Callable[[JobRecord], Job],
        began: float,
        network: ReplicaNetwork,
    ) -> None:
        self._ledger = ledger
        self._view = view
        self._began = began
        self.watch = watch
        self.counts = counts
        self.network = network
        self.memory: dict[str, ScaleMemory] = {}

    def standing(self, service: ServiceRecord) -> ServiceStanding:
        """Return the present state of a service."""
        memory = self.memory.get(service.id, ScaleMemory())
        return ServiceStanding(
            plan_of(service, shared=self.network.shared),
            ServiceMode(service.mode),
            service.mode_since,
            tuple(self.facts(service, it) for it in service.replicas),
            memory.wanted,
            memory.enough_since,
            tuple(ReplicaFailure(it.at, it.version, it.ready_s) for it in service.failures),
        )

    def facts(self, service: ServiceRecord, replica: ReplicaRecord) -> ReplicaFacts:
        """Return the present state of a replica."""
        since = self.watch.since(replica.job)
        state, reason = self.state(replica), self.reason(replica)
        leaves = replica.leaving_since is not None
        return ReplicaFacts(
            job=replica.job,
            version=replica.version,
            phase=phase_of(state, answers=since is not None, leaves=leaves),
            ready_since=since,
            leaving_since=replica.leaving_since,
            in_flight=self.counts.in_flight(service.name, replica.job),
            lacks_room=reason is not None and reason.code not in COMING,
        )

    def state(self, replica: ReplicaRecord) -> State:
        """Return the state of a replica's job; a job that is not accepted yet is queued."""
        job = self._ledger.job(replica.job)
        return State.QUEUED if job is None else State(job.state.value)

    def host(self, replica: ReplicaRecord) -> str | None:
        """Return the address of a running replica, or None if it does not run or is unknown."""
        job = self._ledger.job(replica.job)
        if job is None or State(job.state.value) is not State.RUNNING:
            return None
        return self.network.host_of(WorkerId(job.id, job.attempt, 0))

    def reason(self, replica: ReplicaRecord) -> Reason | None:
        """Return why a replica waits, or how it ended; None while it runs."""
        job = self.waiting(replica)
        return None if job is None else job.reason

    def waiting(self, replica: ReplicaRecord) -> Job | None:
        """Return the job of a replica that does not run, or None if it runs or has no job yet."""
        job = self._ledger.job(replica.job)
        if job is None or State(job.state.value) in (State.STARTING, State.RUNNING):
            return None
        return self._view(job)

    def ready(self, service: ServiceRecord) -> list[ReplicaRecord]:
        """Return the ready replicas, which get requests."""
        return [
            it for it in service.replicas if self.facts(service, it).phase is ReplicaPhase.READY
        ]

    def traffic(self, service: ServiceRecord) -> ServiceTraffic:
        """Return the traffic of a service."""
        flow = self.counts.flow(service.name)
        return ServiceTraffic(
            flow.in_flight, flow.last_request_at, flow.unserved_at, watched=self._began
        )


def plan_of(service: ServiceRecord, *, shared: bool) -> ServicePlan:
    """Return the settings of a service, as input of the decisions.

    Args:
        shared: Whether all replicas share the ports of one machine.
    """
    return ServicePlan(
        least=service.min_replicas,
        most=service.max_replicas,
        idle_s=float(service.idle_s),
        per_replica=service.in_flight,
        version=service.version,
        shares_port=shared and service.port is not None,
    )
