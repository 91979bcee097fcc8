"""Reader of the metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.service.execution.stops import Stops
from benchpool_scheduler.service.housekeeping.auditor import Auditor
from benchpool_scheduler.service.housekeeping.disk import DiskRoom, room_of
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.usage_decay import UsageDecay
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.views.pool_views import PoolViews
from benchpool_scheduler.service.views.prometheus_counters import PrometheusCounters
from benchpool_scheduler.telemetry.live import LiveUse
from benchpool_scheduler.telemetry.samples import GpuSample


@dataclass(frozen=True, slots=True)
class MeasuredGpu:
    """Latest sample of a GPU, with its place."""

    node: str
    index: int
    model: str
    sample: GpuSample


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of the service. Labels have few values: project names and states.

    Attributes:
        jobs: Number of jobs that have not ended, by (project, state).
        jobs_ended: Jobs ended since the start of the process, by (project, state).
        gpus: GPUs by state.
        queue_length: Waiting jobs.
        submissions: Jobs accepted since the start of the process; ``refusals`` by error code.
        preemptions: Preemptions since the start of the process, by project of the victim.
        lost_gpu_s: GPU-seconds that preemptions cost, by project of the victim.
        passes: Passes since the start; ``pass_s`` is their total time, ``last_pass_s`` the last
            one's.
        store_bytes: Size of the database and of its write-ahead log.
        disk: Free space of the state folder's disk, or None if it is unknown.
        stops_waiting: Stops that could not be saved yet.
        breaches: Violations of invariants found by the auditor, by invariant (I1 to I6).
        problems: Sentences of the health report.
        drained: Machines that take no starts because of their own faults.
        past_use_gpu_s: Decayed GPU-seconds above quota, by project (R7).
        use: Latest sample of each GPU.
    """

    jobs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    jobs_ended: Mapping[tuple[str, str], int] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=dict)
    queue_length: int = 0
    submissions: int = 0
    refusals: Mapping[str, int] = field(default_factory=dict)
    preemptions: Mapping[str, int] = field(default_factory=dict)
    lost_gpu_s: Mapping[str, float] = field(default_factory=dict)
    passes: int = 0
    pass_s: float = 0.0
    last_pass_s: float = 0.0
    store_bytes: int = 0
    disk: DiskRoom | None = None
    stops_waiting: int = 0
    breaches: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    drained: int = 0
    past_use_gpu_s: Mapping[str, float] = field(default_factory=dict)
    use: Sequence[MeasuredGpu] = ()


@dataclass(frozen=True, slots=True)
class MetricsReader:
    """Reader of the metrics from the parts that count."""

    ledger: Ledger
    observed: SchedulerState
    usage: UsageDecay
    views: PoolViews
    admission: Admission
    counters: PrometheusCounters
    auditor: Auditor
    stops: Stops
    live: LiveUse

    def read(self) -> Metrics:
        """Return the present metrics."""
        live, seen = self.ledger.counters.by_state, self.observed.now
        return Metrics(
            jobs={(project, state.value): count for (project, state), count in live.items()},
            jobs_ended=self.counters.ended,
            gpus={state.value: count for state, count in self.views.counts().items()},
            queue_length=self.views.waiting(),
            submissions=self.admission.accepted,
            refusals=self.admission.refused,
            preemptions=self.counters.preemptions,
            lost_gpu_s=self.counters.lost_gpu_s,
            passes=seen.latest_pass.passes,
            pass_s=seen.latest_pass.pass_s,
            last_pass_s=seen.latest_pass.last_pass_s,
            store_bytes=self.ledger.store.size(),
            disk=room_of(self.observed.settings.state),
            stops_waiting=self.stops.waiting,
            breaches=self.auditor.breaches,
            problems=tuple(seen.problems.values()),
            drained=len(seen.drained),
            past_use_gpu_s=self.usage.by_project(),
            use=tuple(self._use()),
        )

    def _use(self) -> Iterator[MeasuredGpu]:
        devices = self.observed.now.inventory.by_uuid
        latest = self.live.now(self.observed.settings.clock.now())
        for gpu, device in devices.items():
            if gpu in latest:
                yield MeasuredGpu(device.node, device.index, device.model, latest[gpu].sample)
