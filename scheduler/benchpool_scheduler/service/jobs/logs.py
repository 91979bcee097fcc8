"""Logs, curves and results of a job's workers, for callers who may see the job."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchpool_scheduler.contract import JobMetrics, MetricsQuery
from benchpool_scheduler.errors import NotFound, Unavailable
from benchpool_scheduler.phrases import count, visible
from benchpool_scheduler.runtime import LogChunk, Results, Runtime, WorkerId
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.curve_answers import CurveAnswers
from benchpool_scheduler.service.jobs.lookup import visible_job
from benchpool_scheduler.service.ledger.job_curves import JobCurves
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState

LOG_BYTES = 1 << 20
"""Maximum size of one part of a log or of results, in bytes."""


class JobLogs:
    """Output of workers. ``attempt`` None selects the newest one; workers are counted from 0."""

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, runtime: Runtime, curves: JobCurves
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._curves = curves
        self._answers = CurveAnswers()

    def which(
        self, caller: Caller, job: str, *, attempt: int | None = None, worker: int = 0
    ) -> WorkerId:
        """Return the worker that the arguments select. Errors: NotFound."""
        record = visible_job(self._ledger, self._observed.now.configuration, caller, job)
        number = max(1, record.attempt) if attempt is None else attempt
        known = self._ledger.attempt(record.id, number)
        # The count includes workers that have left, and their replacements.
        workers = record.spec.workers if known is None else len(known.workers)
        if not 1 <= number <= max(1, record.attempt) or not 0 <= worker < workers:
            raise NotFound(
                f"Job {record.id[:8]} has {count(record.attempt, 'attempt')} of "
                f"{count(workers, 'worker')} "
                f"(counted from 0); there is no attempt {number} with worker {worker}.",
                field="attempt",
                numbers={"attempts": record.attempt, "workers": workers},
            )
        return WorkerId(record.id, number, worker)

    async def read(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        limit: int = 65536,
    ) -> LogChunk:
        """Return at most ``limit`` bytes (1 MiB at most) from ``offset``; empty if there are none
        yet.

        A negative ``offset`` counts from the log's present end. Errors: NotFound.
        """
        which = self.which(caller, job, attempt=attempt, worker=worker)
        if offset < 0:
            offset += await self._runtime.find_log_offset(which, None)
        return await self._runtime.read_log(which, max(0, offset), min(limit, LOG_BYTES))

    async def find_offset(
        self,
        caller: Caller,
        job: str,
        since: float,
        *,
        attempt: int | None = None,
        worker: int = 0,
    ) -> int:
        """Return the first offset written at ``since`` (epoch seconds) or later. Errors:
        NotFound.
        """
        which = self.which(caller, job, attempt=attempt, worker=worker)
        return await self._runtime.find_log_offset(which, since)

    async def wait(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        timeout_s: float = 15.0,
    ) -> bool:
        """Wait for more output after ``offset`` or the log's end; return False on timeout."""
        which = self.which(caller, job, attempt=attempt, worker=worker)
        return await self._runtime.wait_log(which, max(0, offset), timeout_s)

    async def metrics(self, caller: Caller, job: str, query: MetricsQuery) -> JobMetrics:
        """Return the curves of a job. Errors: NotFound, Unavailable."""
        record = visible_job(self._ledger, self._observed.now.configuration, caller, job)
        try:
            lines = await self._curves.lines(record.id)
        except OSError as failed:
            raise Unavailable(
                f"The curves of job {record.id[:8]} cannot be read now ({failed.strerror})."
            ) from failed
        return await self._answers.of(record.id, visible(record.name), lines, query)

    async def read_results(
        self, caller: Caller, job: str, *, worker: int = 0, offset: int = 0, limit: int = LOG_BYTES
    ) -> bytes:
        """Return a part of the results that a worker has sent, as a tar archive.

        The part is empty at the end, and if results are in the folder that the job named. Errors:
        NotFound.
        """
        record = visible_job(self._ledger, self._observed.now.configuration, caller, job)
        runtime = self._runtime
        packed = runtime.results(record.id, worker) if isinstance(runtime, Results) else None
        if packed is None:
            return b""
        return await asyncio.to_thread(_part, packed, offset, limit)


def _part(file: Path, offset: int, limit: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(limit)
