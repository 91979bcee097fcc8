"""A service as decisions see it: its record, the states of its jobs, who answers, what comes in."""

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
"""Why a job may wait that soon starts: there is room for it, or others are leaving."""


@dataclass(slots=True)
class ScaleMemory:
    """How many replicas a service was last meant to have; forgotten with the process."""

    wanted: int | None = None
    enough_since: float | None = None


class ReplicaTable:
    """Reads what is known of replicas.

    Attributes:
        counts: Counts requests; exchanged when there are addresses.

    Args:
        view: Returns a job as whoever may see it does.
        network: Where replicas listen and are reached.
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
        """Return a service as it is now."""
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
        """Return a replica as it is now."""
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
        """Return the state of a replica's job; one that is not accepted yet is queued."""
        job = self._ledger.job(replica.job)
        return State.QUEUED if job is None else State(job.state.value)

    def host(self, replica: ReplicaRecord) -> str | None:
        """Return where a replica is reached whose program runs; None where that is not known."""
        job = self._ledger.job(replica.job)
        if job is None or State(job.state.value) is not State.RUNNING:
            return None
        return self.network.host_of(WorkerId(job.id, job.attempt, 0))

    def reason(self, replica: ReplicaRecord) -> Reason | None:
        """Return why a replica waits, or how it ended; None where it runs."""
        job = self.waiting(replica)
        return None if job is None else job.reason

    def waiting(self, replica: ReplicaRecord) -> Job | None:
        """Return the job of a replica that does not run; None where it does, or is none yet."""
        job = self._ledger.job(replica.job)
        if job is None or State(job.state.value) in (State.STARTING, State.RUNNING):
            return None
        return self._view(job)

    def ready(self, service: ServiceRecord) -> list[ReplicaRecord]:
        """Return the replicas that get requests."""
        return [
            it for it in service.replicas if self.facts(service, it).phase is ReplicaPhase.READY
        ]

    def traffic(self, service: ServiceRecord) -> ServiceTraffic:
        """Return what came in at a service."""
        flow = self.counts.flow(service.name)
        return ServiceTraffic(flow.in_flight, flow.last_request_at, self._began)


def plan_of(service: ServiceRecord, *, shared: bool) -> ServicePlan:
    """Return what a service was asked for, as decisions see it.

    Args:
        shared: All replicas share the ports of one machine.
    """
    return ServicePlan(
        least=service.min_replicas,
        most=service.max_replicas,
        idle_s=float(service.idle_s),
        per_replica=service.in_flight,
        version=service.version,
        shares_port=shared and service.port is not None,
    )
