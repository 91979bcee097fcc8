"""Summaries of a job's measurements, computed at its end and kept in its record.

Samples are deleted after days, and their database may be lost. The record is kept as long as the
job is shown, and is part of every backup.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from benchpool_scheduler.contract.job_usage import JobMeasurements
from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service.housekeeping.metering import Metering
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, SaveJob, WorkerRecord
from benchpool_scheduler.telemetry import FAULTS
from benchpool_scheduler.telemetry.job_measurements import JobBooks, measured
from benchpool_scheduler.telemetry.rollup import MIB

log = logging.getLogger(__name__)

TOGETHER_S = 0.5
"""Time in which ended jobs are collected into one write, in seconds."""

AGAIN_S = 10.0
"""Delay before a failed write is tried again, in seconds."""

MISSED_S = 24 * 3600.0
"""Age of ended jobs whose missing summaries are computed after a start, in seconds."""


class JobMeasuring:
    """Background task that saves the measurements of jobs at their end."""

    def __init__(self, ledger: Ledger, observed: SchedulerState, metering: Metering) -> None:
        self._ledger = ledger
        self._observed = observed
        self._metering = metering
        self._waiting: dict[str, None] = {}
        self._woken = asyncio.Event()

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Queue the jobs that have ended."""
        ended = [job for job in jobs if self._lacks(self._ledger.job(job))]
        if ended and self._metering.tick_s:
            self._waiting.update(dict.fromkeys(ended))
            self._woken.set()

    async def run(self) -> None:
        """Save the measurements of each job that ends, until cancelled."""
        since = self._observed.settings.clock.now() - MISSED_S
        missed = [job.id for job in self._ledger.jobs() if (job.ended or 0.0) >= since]
        self.jobs_changed(missed)
        while True:
            await self._woken.wait()
            await asyncio.sleep(TOGETHER_S)
            self._woken.clear()
            jobs, self._waiting = list(self._waiting), {}
            try:
                await self.keep(jobs)
            except BenchpoolError as failed:
                log.warning("the use of jobs cannot be saved now (%s); retrying", failed)
                await asyncio.sleep(AGAIN_S)
                self._waiting.update(dict.fromkeys(jobs))
                self._woken.set()
            except Exception:
                log.exception("the use of jobs was not saved")  # the jobs stay without a summary

    async def keep(self, jobs: Sequence[str]) -> None:
        """Save the measurements of ended jobs. Errors: Unavailable, and then none is saved."""
        await self._metering.settle()
        found: dict[str, JobMeasurements] = {}
        for job in jobs:
            record = self._ledger.job(job)
            books = None if record is None else self._books(record)
            if books is not None:
                try:
                    found[job] = await asyncio.to_thread(self._read, job, books)
                except FAULTS as fault:
                    log.warning("measurements of job %s cannot be read (%s)", job, fault)
        async with self._ledger.lock:
            records = ((self._ledger.job(job), it) for job, it in found.items())
            await self._ledger.commit(
                *(
                    SaveJob(replace(record, measured=it))
                    for record, it in records
                    if record is not None and self._lacks(record)
                )
            )

    def _lacks(self, job: JobRecord | None) -> bool:
        return (
            job is not None
            and not job.live
            and job.attempt > 0
            and job.measured is None
            and SELF_TEST not in job.spec.tags
        )

    def _read(self, job: str, books: JobBooks) -> JobMeasurements:
        """Read the measurements; blocks."""
        database = self._metering.database
        totals, series = database.totals_of(job), database.series_of(job)
        return measured(books, totals, series, database.workers_of(job), self._metering.tick_s)

    def _books(self, job: JobRecord) -> JobBooks | None:
        """Return the ledger's facts about a job, or None if no worker started."""
        ran = [it for it in self._ledger.attempts(job.id) if _begin(it) is not None]
        if not ran:
            return None
        last, now = ran[-1], self._observed.settings.clock.now()
        held = [(it, _seconds(it, now)) for attempt in ran for it in attempt.workers]
        devices = self._observed.now.inventory.by_uuid
        gpus = [devices[gpu] for it in last.workers for gpu in it.gpus if gpu in devices]
        sizes = [it.memory_mib for it in gpus if it.memory_mib is not None]
        return JobBooks(
            held_s=sum(seconds * len(worker.gpus) for worker, seconds in held),
            worker_s=sum(seconds for _, seconds in held),
            last=last.attempt,
            begin=_begin(last) or now,
            end=max((it.ended for it in last.workers if it.ended is not None), default=now),
            nodes=len({it.node for it in last.workers}),
            lost_s=sum(
                it.cost_gpu_s
                for it in self._ledger.preemptions(job.id)
                if it.unsaved_gpu_s is not None  # without it the cost is an estimate
            ),
            gpu_memory_gib=min(sizes) / MIB if sizes else None,
        )


def _begin(attempt: AttemptRecord) -> float | None:
    return min((it.started for it in attempt.workers if it.started is not None), default=None)


def _seconds(worker: WorkerRecord, now: float) -> float:
    if worker.started is None:
        return 0.0
    return max((worker.ended or now) - worker.started, 0.0)
