"""Labelled traces of jobs: samples in the form of driver and kernel, and the expected finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from benchpool_scheduler.accounting.job_notes import FinishedJob, PoolSizes
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.telemetry import (
    Database,
    GpuSample,
    HeldSample,
    HeldWorkerSample,
    Holder,
    WorkerSample,
)
from benchpool_scheduler.telemetry.job_measurements import JobBooks, measured
from benchpool_scheduler.worker.worker_id import WorkerId

TICK_S = 30.0
POOL = PoolSizes(cpus=64, memory_gib=512, gpus=8, models={"H100": 80, "H200": 141, "L4": 24})
BEGIN = 1_000_000.0

Phases = Sequence[tuple[float, float | None]]
"""Minutes and the activity in them, or None for no samples."""


@dataclass(frozen=True)
class Trace:
    """Trace of one job.

    Attributes:
        gpus: Phases of each GPU of each worker, one after the other.
        used_cpus: CPU cores used by each worker, or None if not measured.
        read_mb_s: Read rate from disks, in MB/s.
        memory_gib: Maximum memory of a GPU, in GiB.
        host_gib: Maximum host memory of a worker, in GiB.
        lost: Share of its GPU time that pauses cost.
    """

    gpus: Sequence[Phases]
    spec: JobSpec = JobSpec()  # noqa: RUF009 (frozen)
    used_cpus: float | None = 3.0
    cpus: float = 0.0
    read_mb_s: float = 1.0
    memory_gib: float = 60.0
    host_gib: float = 8.0
    sm: float | None = 0.8
    nodes: int = 1
    lost: float = 0.0
    failed: bool = False
    simulated: bool = False
    xid: int | None = None
    size_gib: float = 80.0

    @property
    def length_s(self) -> float:
        """Time from its start to its end, in seconds."""
        return sum(minutes for minutes, _ in self.gpus[0]) * 60.0


def finished(trace: Trace, database: Database, job: str) -> FinishedJob:
    """Write a trace into a database like measurements, and read the job from it."""
    workers = trace.spec.workers
    each = len(trace.gpus) // workers
    gpus: list[HeldSample] = []
    used: list[HeldWorkerSample] = []
    for worker in range(workers):
        holder = Holder(job=job, attempt=1, worker=worker, user="susan", project="vision")
        for number, phases in enumerate(trace.gpus[worker * each : (worker + 1) * each]):
            gpus += _samples(trace, f"GPU-{worker}-{number}-{job}", phases, holder)
        if trace.used_cpus is not None:
            used.append(_used(trace, WorkerId(job, 1, worker), holder))
    database.write(gpus, used)
    held_s = trace.length_s * len(trace.gpus)
    books = JobBooks(
        held_s=held_s,
        worker_s=trace.length_s * workers,
        last=1,
        begin=BEGIN,
        end=BEGIN + trace.length_s,
        nodes=trace.nodes,
        lost_s=trace.lost * held_s,
        gpu_memory_gib=trace.size_gib,
    )
    measurement = measured(
        books,
        database.totals_of(job),
        database.series_of(job),
        database.workers_of(job),
        TICK_S,
    )
    return FinishedJob(job[:8], trace.failed, trace.spec, measurement, POOL)


def _samples(trace: Trace, gpu: str, phases: Phases, holder: Holder) -> Sequence[HeldSample]:
    found: list[HeldSample] = []
    at = BEGIN
    for minutes, activity in phases:
        for _ in range(round(minutes * 60 / TICK_S)):
            at += TICK_S
            if activity is None:
                continue
            sample = GpuSample(
                at=at,
                span_s=TICK_S,
                gpu=gpu,
                activity=activity,
                sm_activity=None if trace.sm is None else trace.sm * activity,
                memory_used_gib=None if trace.simulated else trace.memory_gib,
                memory_total_gib=trace.size_gib,
                energy_j=3000.0,
                xid=trace.xid if not found else None,
                simulated=trace.simulated,
            )
            found.append(HeldSample(sample, holder))
    return found


def _used(trace: Trace, worker: WorkerId, holder: Holder) -> HeldWorkerSample:
    length_s = trace.length_s
    sample = WorkerSample(
        of=worker,
        at=BEGIN + length_s,
        span_s=length_s,
        cpu_s=(trace.used_cpus or 0.0) * length_s,
        cpus=trace.cpus,
        memory_gib=trace.host_gib,
        memory_peak_gib=trace.host_gib,
        read_bytes=round(trace.read_mb_s * 1e6 * length_s),
        written_bytes=0,
    )
    return HeldWorkerSample(sample, holder)


def _steady(random: Random, low: float, high: float, gpus: int = 1, least: float = 40) -> list[Any]:
    """Return GPUs that are about equally busy for more than half an hour."""
    share, minutes = random.uniform(low, high), round(random.uniform(least, least + 60))
    return [[(minutes, min(share + random.uniform(0, 0.03), 1.0))] for _ in range(gpus)]


def _with(random: Random, before: float, between: float, after: float, gpus: int = 1) -> list[Any]:
    """Return GPUs that are busy except for these parts of two hours."""
    busy = (1 - before - between - after) / 2
    share = random.uniform(0.8, 0.95)
    parts = ((before, 0.0), (busy, share), (between, 0.0), (busy, share), (after, 0.0))
    return [[(round(120 * part), activity) for part, activity in parts] for _ in range(gpus)]


def _cpus_full(random: Random, cpus: int) -> Trace:
    used = cpus * random.uniform(0.93, 1.0)
    return Trace(_steady(random, 0.1, 0.6), JobSpec(cpus=cpus), used_cpus=used, cpus=cpus)


Make = Callable[[Random], Trace]

LABELLED: Mapping[str, Make] = {
    "driver-errors": lambda r: Trace(_steady(r, 0.2, 0.9), xid=r.choice([31, 63, 79])),
    "gpu-memory-full": lambda r: Trace(
        _steady(r, 0.5, 0.9), memory_gib=r.uniform(78.2, 80), failed=True
    ),
    "memory-full": lambda r: Trace(
        _steady(r, 0.5, 0.9), JobSpec(memory_gib=32), host_gib=r.uniform(31, 32)
    ),
    "never-used": lambda r: Trace([[(60, 0.0)]] * r.choice([1, 4]), used_cpus=r.uniform(0.5, 20)),
    "idle-gpus": lambda r: Trace(
        [[(60, r.uniform(0.5, 0.9))], *([[(60, 0.0)]] * r.choice([1, 3]))], JobSpec(gpus=4)
    ),
    "lost-to-pauses": lambda r: Trace(_steady(r, 0.75, 0.95), lost=r.uniform(0.22, 0.6)),
    "slow-start": lambda r: Trace(_with(r, r.uniform(0.22, 0.6), 0, 0)),
    "long-tail": lambda r: Trace(_with(r, 0, 0, r.uniform(0.22, 0.6))),
    "stops-between": lambda r: Trace(_with(r, 0, r.uniform(0.32, 0.6), 0)),
    "cpus-full": lambda r: _cpus_full(r, r.choice([1, 4, 8])),
    "one-cpu": lambda r: Trace(
        _steady(r, 0.05, 0.6), used_cpus=r.uniform(0.95, 1.15), cpus=r.choice([0, 4, 16])
    ),
    "reads-disks": lambda r: Trace(
        _steady(r, 0.05, 0.4), used_cpus=r.uniform(0.3, 0.8), read_mb_s=r.uniform(120, 2000)
    ),
    "waits": lambda r: Trace(
        _steady(r, 0.02, 0.1), used_cpus=r.uniform(0.01, 0.15), read_mb_s=r.uniform(0, 5)
    ),
    "over-the-network": lambda r: Trace(
        _steady(r, 0.2, 0.4, 4), JobSpec(gpus=1, workers=4), nodes=r.choice([2, 3, 4])
    ),
    "uneven": lambda r: Trace([[(60, r.uniform(0.85, 0.95))], [(60, r.uniform(0.2, 0.4))]]),
    "small-kernels": lambda r: Trace(_steady(r, 0.85, 0.95), sm=r.uniform(0.05, 0.22)),
    "large-gpu": lambda r: Trace(_steady(r, 0.75, 0.95), memory_gib=r.uniform(4, 17)),
    "cpus-unused": lambda r: Trace(
        _steady(r, 0.75, 0.95), JobSpec(cpus=32), used_cpus=r.uniform(1.5, 7), cpus=32
    ),
    "memory-unused": lambda r: Trace(
        _steady(r, 0.75, 0.95), JobSpec(memory_gib=128), host_gib=r.uniform(2, 30)
    ),
    "far-limit": lambda r: Trace(
        _steady(r, 0.75, 0.95), JobSpec(time_limit_s=r.choice([86_400, 172_800]))
    ),
}
"""Maker of a trace for each rule, by the rule's name; each random number gives a new trace."""

HEALTHY: Sequence[Make] = (
    lambda r: Trace(_steady(r, 0.75, 0.98), memory_gib=r.uniform(30, 75)),
    lambda r: Trace(_steady(r, 0.75, 0.98, 8), JobSpec(gpus=4, workers=2), nodes=2),
    lambda r: Trace(
        _steady(r, 0.8, 0.98), JobSpec(cpus=8, memory_gib=32), used_cpus=r.uniform(3, 7), cpus=8,
        host_gib=r.uniform(10, 28),
    ),
    lambda r: Trace(_with(r, r.uniform(0, 0.05), r.uniform(0, 0.08), r.uniform(0, 0.05))),
    lambda r: Trace(_steady(r, 0.75, 0.98), JobSpec(time_limit_s=7200), sm=None),
)  # fmt: skip
"""Makers of jobs without any finding."""
