"""Holders of GPUs according to the ledger, in the terms of telemetry."""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, LeaseRecord, WorkerRecord
from benchpool_scheduler.telemetry import NO_HOLDER, GpuSample, Holder
from benchpool_scheduler.worker.worker_id import WorkerId


def of_lease(lease: LeaseRecord) -> Holder:
    """Return a bench as a holder."""
    return Holder(bench=lease.id, server=lease.server, user=lease.user)


def of_worker(job: JobRecord, attempt: AttemptRecord, worker: WorkerRecord) -> Holder:
    """Return a worker as a holder."""
    return Holder(
        job=job.id,
        attempt=attempt.attempt,
        worker=worker.index,
        user=job.user,
        project=job.project,
    )


def living_workers(ledger: Ledger) -> Iterator[tuple[JobRecord, AttemptRecord, WorkerRecord]]:
    """Yield the workers that have not ended, which hold their GPUs."""
    for job in ledger.live():
        attempt = ledger.attempt(job.id, job.attempt)
        for worker in () if attempt is None else attempt.live_workers:
            if attempt is not None:
                yield job, attempt, worker


def of_gpu(ledger: Ledger, gpu: str) -> Holder:
    """Return the holder of a GPU now. If a bench and a job hold it, a breach, return the bench."""
    lease = ledger.leased.get(gpu)
    if lease is not None:
        return of_lease(lease)
    job = ledger.job(ledger.counters.holders.get(gpu, ""))
    attempt = None if job is None else ledger.attempt(job.id, job.attempt)
    if job is None or attempt is None:
        return NO_HOLDER
    found = (it for it in attempt.live_workers if gpu in it.gpus)
    return next((of_worker(job, attempt, it) for it in found), NO_HOLDER)


def of_sample(ledger: Ledger, sample: GpuSample) -> Holder:
    """Return the holder of a sample's GPU.

    It is the holder that the sample names, if the ledger has its record. A sample without a name
    belongs to the present holder of the GPU.
    """
    match sample.of:
        case None:
            return of_gpu(ledger, sample.gpu)
        case str(lease_id):
            found = (it for it in ledger.leases() if it.id == lease_id)
            return next(map(of_lease, found), NO_HOLDER)
        case WorkerId() as worker:
            job, attempt = ledger.job(worker.job), ledger.attempt(worker.job, worker.attempt)
            if job is None or attempt is None:
                return NO_HOLDER
            of_it = (it for it in attempt.workers if it.index == worker.worker)
            return next((of_worker(job, attempt, it) for it in of_it), NO_HOLDER)
