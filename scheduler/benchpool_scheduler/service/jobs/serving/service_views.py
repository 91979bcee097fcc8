"""Views of services for callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.contract.serving import (
    PoolService,
    ServiceEvent,
    ServiceReplica,
    ServiceTimes,
)
from benchpool_scheduler.phrases import start_sentence, visible
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.serving.replica_table import ReplicaTable
from benchpool_scheduler.service.jobs.serving.service_runner import ServiceRunner
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.serving.states import ServiceMode
from benchpool_scheduler.serving.words import ServiceCondition, condition
from benchpool_scheduler.store.service_files import ReplicaRecord, ServiceRecord
from benchpool_scheduler.telemetry.live import JobGpuUse


class ServiceViews:
    """Converter of service records into types of the contract.

    Attributes:
        table: State of the replicas.
        use_of: Returns the present GPU activity of a job; set where it is measured.
    """

    def __init__(
        self, observed: SchedulerState, table: ReplicaTable, runner: ServiceRunner
    ) -> None:
        self._observed = observed
        self._runner = runner
        self.table = table
        self.use_of: Callable[[str], JobGpuUse] = lambda job: JobGpuUse()

    def condition(self, service: ServiceRecord) -> ServiceCondition:
        """Return the condition of a service, with words for users."""
        return condition(
            self.table.standing(service),
            self._now,
            mode_reason=service.said,
            waits=self._waits(service),
            failed=service.failures[0].text if service.failures else "",
            problem=self._runner.problems.get(service.name, ""),
            unreached=self.table.network.hint,
        )

    def starts_at(self, service: ServiceRecord) -> float | None:
        """Return the estimated start of the first waiting replica, in epoch seconds, or None."""
        start = next((it.estimated_start for it in self._waiting(service)), None)
        return None if start is None or start.likely is None else start.likely.timestamp()

    def _waits(self, service: ServiceRecord) -> str:
        """Return why the first waiting replica waits, and when it starts."""
        job = next(self._waiting(service), None)
        if job is None or job.reason is None:
            return ""
        start = job.estimated_start
        if start is None or job.state is not State.QUEUED:
            return visible(job.reason.text)
        sentence = start_sentence(start, datetime.fromtimestamp(self._now, UTC))
        return f"{visible(job.reason.text)} Start: {visible(sentence)}."

    def _waiting(self, service: ServiceRecord) -> Iterator[Job]:
        found = (self.table.waiting(it) for it in service.replicas if it.leaving_since is None)
        return (it for it in found if it is not None)

    def shown(self, caller: Caller, service: ServiceRecord) -> PoolService:
        """Return a service as a caller sees it; callers who may only open it see no replicas."""
        configuration = self._observed.now.configuration
        mine = rights.may_use_of(caller, service.user, service.project, configuration)
        how, flow = self.condition(service), self.table.counts.flow(service.name)
        memory = self.table.memory.get(service.id)
        awake = ServiceMode(service.mode) is ServiceMode.AWAKE
        wanted = None if memory is None else memory.wanted
        return PoolService(
            id=service.id,
            name=service.name,
            user=service.user,
            project=service.project,
            state=how.state,
            text=how.text,
            url=f"{self._observed.settings.base_url.rstrip('/')}/s/{service.name}/",
            may_change=mine,
            access=service.access,
            group=service.group if mine else None,
            version=service.version,
            created=_moment(service.created),
            gpus=service.submission.gpus,
            min_replicas=service.min_replicas,
            max_replicas=service.max_replicas,
            wanted=(wanted or max(service.min_replicas, 1)) if awake else 0,
            idle_s=service.idle_s,
            in_flight=service.in_flight,
            readiness=service.readiness,
            port=service.port,
            keep_prefix=service.keep_prefix,
            failures=how.failures,
            retry_at=None if how.retry_at is None else _moment(how.retry_at),
            times=ServiceTimes(
                requests_per_s=round(flow.requests_per_s, 3),
                p50_ms=flow.p50_ms,
                p95_ms=flow.p95_ms,
                in_flight=flow.in_flight,
                last_request=(
                    None if flow.last_request_at is None else _moment(flow.last_request_at)
                ),
            ),
            replicas=[self._replica(service, it) for it in service.replicas] if mine else [],
            events=[ServiceEvent(_moment(it.at), it.text) for it in service.notes] if mine else [],
        )

    def _replica(self, service: ServiceRecord, replica: ReplicaRecord) -> ServiceReplica:
        facts, reason = self.table.facts(service, replica), self.table.reason(replica)
        since, use = facts.ready_since, self.use_of(replica.job)
        return ServiceReplica(
            job=replica.job,
            version=replica.version,
            phase=str(facts.phase),
            job_state=str(self.table.state(replica)),
            text="" if reason is None else visible(reason.text),
            begun=_moment(replica.begun),
            ready_since=None if since is None else _moment(since),
            in_flight=facts.in_flight,
            gpu_activity=use.activity,
            gpu_memory_used_gib=use.memory_used_gib,
        )

    @property
    def _now(self) -> float:
        return self._observed.settings.clock.now()


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
