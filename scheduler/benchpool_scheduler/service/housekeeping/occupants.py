"""Holders of GPUs: the present ones, and those of a gap in the record by the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval
from benchpool_scheduler.accounting.wanted import Ask, FreeGpu
from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, LeaseRecord, WorkerRecord

UNHELD: Mapping[GpuState, GpuUseKind] = {
    GpuState.BUILD_FREE: GpuUseKind.RESERVED,
    GpuState.FREE: GpuUseKind.FREE,
    GpuState.CLOSED: GpuUseKind.BROKEN,
    GpuState.FOREIGN: GpuUseKind.FOREIGN,
    GpuState.BROKEN: GpuUseKind.BROKEN,
}
"""Recorded use of a GPU without a bench or a worker."""

HELD_BACK = frozenset({ReasonCode.RESERVED_FOR_OTHERS})
"""Wait reasons of jobs that would fit on free GPUs and that no limit prevents from starting."""


def occupant(ledger: Ledger, gpu: str, state: GpuState, wanted: frozenset[str]) -> GpuHolder:
    """Return the present holder of a GPU.

    Args:
        state: State of the GPU. ``wanted``: free GPUs that waiting jobs could have used.
    """
    lease, job_id = ledger.leased.get(gpu), ledger.counters.holders.get(gpu)
    if state is GpuState.BUILD_HELD and lease is not None:
        return of_lease(lease)
    if state in (GpuState.TRAIN_WITHIN_QUOTA, GpuState.TRAIN_OVER_QUOTA) and job_id is not None:
        job = ledger.job(job_id)
        attempt = None if job is None else ledger.attempt(job.id, job.attempt)
        for worker in () if attempt is None else attempt.live_workers:
            if job is not None and attempt is not None and gpu in worker.gpus:
                return of_worker(job, attempt, runs=worker.started is not None)
    unheld = UNHELD.get(state, GpuUseKind.FREE)
    return GpuHolder(GpuUseKind.WANTED if unheld is GpuUseKind.FREE and gpu in wanted else unheld)


def of_lease(lease: LeaseRecord) -> GpuHolder:
    """Return a bench as a holder."""
    return GpuHolder(GpuUseKind.BENCH, user=lease.user, bench=lease.id)


def of_worker(job: JobRecord, attempt: AttemptRecord, *, runs: bool) -> GpuHolder:
    """Return a worker of a job as a holder."""
    kind = GpuUseKind.TRAINING if runs else GpuUseKind.PREPARING
    return GpuHolder(kind, job.user, job.project, job.id, attempt.attempt)


def held_since(ledger: Ledger, since: float, now: float) -> Mapping[str, list[GpuInterval]]:
    """Return the holders of all GPUs at ``since`` or later, by the ledger."""
    found: dict[str, list[GpuInterval]] = {}
    for one in (*_leases(ledger, now), *_workers(ledger, since, now)):
        found.setdefault(one.gpu, []).append(one)
    return found


def _leases(ledger: Ledger, now: float) -> Iterator[GpuInterval]:
    for lease in ledger.leases():
        for gpu in lease.gpus:
            yield GpuInterval(gpu, "", "", lease.since, now, of_lease(lease))


def _workers(ledger: Ledger, since: float, now: float) -> Iterator[GpuInterval]:
    for job in ledger.jobs():
        if job.ended is not None and job.ended < since:
            continue
        for attempt in ledger.attempts(job.id):
            for worker in attempt.workers:
                if worker.ended is None or worker.ended > since:
                    yield from _worker(job, attempt, worker, now)


def _worker(
    job: JobRecord, attempt: AttemptRecord, worker: WorkerRecord, now: float
) -> Iterator[GpuInterval]:
    end = now if worker.ended is None else worker.ended
    begun = end if worker.started is None else min(worker.started, end)
    for gpu in worker.gpus:
        waits, runs = (of_worker(job, attempt, runs=it) for it in (False, True))
        yield GpuInterval(gpu, worker.node, "", attempt.decided, begun, waits)
        yield GpuInterval(gpu, worker.node, "", begun, end, runs)


def held_back(ledger: Ledger, seen: Observations) -> Iterator[Ask]:
    """Yield the requests of waiting jobs that would fit, but are held back for other jobs."""
    for job_id, reason in seen.latest_pass.reasons.items():
        if reason.code in HELD_BACK and (job := ledger.job(job_id)) is not None:
            yield Ask(job.spec.gpus, job.spec.least_workers, job.spec.gpu_models)


def free_gpus(
    nodes: Mapping[str, Iterable[Device]], states: Mapping[str, GpuState]
) -> Mapping[str, list[FreeGpu]]:
    """Return the free GPUs of each node, in order of their index."""
    found: dict[str, list[FreeGpu]] = {}
    for node, devices in nodes.items():
        for device in devices:
            if states.get(device.uuid) is GpuState.FREE:
                found.setdefault(node, []).append(FreeGpu(device.uuid, device.model))
    return found
