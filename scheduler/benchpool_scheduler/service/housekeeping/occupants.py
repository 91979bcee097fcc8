"""Who has a GPU now, and who had it by the ledger while nobody wrote it down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from benchpool_scheduler.accounting.classes import Occupation
from benchpool_scheduler.accounting.occupancy import Occupancy, Occupant
from benchpool_scheduler.accounting.wanted import Ask, FreeGpu
from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, LeaseRecord, WorkerRecord

UNHELD: Mapping[GpuState, Occupation] = {
    GpuState.BUILD_FREE: Occupation.RESERVED,
    GpuState.FREE: Occupation.FREE,
    GpuState.CLOSED: Occupation.BROKEN,
    GpuState.FOREIGN: Occupation.FOREIGN,
    GpuState.BROKEN: Occupation.BROKEN,
}
"""What a GPU without a bench or a worker is recorded as."""

HELD_BACK = frozenset({ReasonCode.RESERVED_FOR_OTHERS})
"""Reasons of jobs that would fit on what is free, and that no limit of anybody forbids to start."""


def occupant(ledger: Ledger, gpu: str, state: GpuState, wanted: frozenset[str]) -> Occupant:
    """Return who has a GPU now.

    Args:
        state: What it is doing. ``wanted``: free GPUs that somebody could have used.
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
    unheld = UNHELD.get(state, Occupation.FREE)
    return Occupant(Occupation.WANTED if unheld is Occupation.FREE and gpu in wanted else unheld)


def of_lease(lease: LeaseRecord) -> Occupant:
    """Return a bench as an occupant."""
    return Occupant(Occupation.BENCH, user=lease.user, bench=lease.id)


def of_worker(job: JobRecord, attempt: AttemptRecord, *, runs: bool) -> Occupant:
    """Return a worker of a job as an occupant."""
    kind = Occupation.TRAINING if runs else Occupation.PREPARING
    return Occupant(kind, job.user, job.project, job.id, attempt.attempt)


def held_since(ledger: Ledger, since: float, now: float) -> Mapping[str, list[Occupancy]]:
    """Return who held which GPU at ``since`` or later, by the ledger, for all GPUs."""
    found: dict[str, list[Occupancy]] = {}
    for one in (*_leases(ledger, now), *_workers(ledger, since, now)):
        found.setdefault(one.gpu, []).append(one)
    return found


def _leases(ledger: Ledger, now: float) -> Iterator[Occupancy]:
    for lease in ledger.leases():
        for gpu in lease.gpus:
            yield Occupancy(gpu, "", "", lease.since, now, of_lease(lease))


def _workers(ledger: Ledger, since: float, now: float) -> Iterator[Occupancy]:
    for job in ledger.jobs():
        if job.ended is not None and job.ended < since:
            continue
        for attempt in ledger.attempts(job.id):
            for worker in attempt.workers:
                if worker.ended is None or worker.ended > since:
                    yield from _worker(job, attempt, worker, now)


def _worker(
    job: JobRecord, attempt: AttemptRecord, worker: WorkerRecord, now: float
) -> Iterator[Occupancy]:
    end = now if worker.ended is None else worker.ended
    begun = end if worker.started is None else min(worker.started, end)
    for gpu in worker.gpus:
        waits, runs = (of_worker(job, attempt, runs=it) for it in (False, True))
        yield Occupancy(gpu, worker.node, "", attempt.decided, begun, waits)
        yield Occupancy(gpu, worker.node, "", begun, end, runs)


def held_back(ledger: Ledger, seen: Observations) -> Iterator[Ask]:
    """Yield what waiting jobs ask for that would fit but for the scheduler, the oldest first."""
    for job_id, reason in seen.latest_pass.reasons.items():
        if reason.code in HELD_BACK and (job := ledger.job(job_id)) is not None:
            yield Ask(job.spec.gpus, job.spec.least_workers, job.spec.gpu_models)


def free_gpus(
    nodes: Mapping[str, Iterable[Device]], states: Mapping[str, GpuState]
) -> Mapping[str, list[FreeGpu]]:
    """Return the free GPUs of each node, in the order of their index."""
    found: dict[str, list[FreeGpu]] = {}
    for node, devices in nodes.items():
        for device in devices:
            if states.get(device.uuid) is GpuState.FREE:
                found.setdefault(node, []).append(FreeGpu(device.uuid, device.model))
    return found
