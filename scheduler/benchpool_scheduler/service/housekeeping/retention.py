"""Removal of old data: ended jobs, their files by kind and age, and unused contents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import get_args

from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.runtime import Part, Runtime
from benchpool_scheduler.service.administration.history import past_job
from benchpool_scheduler.service.jobs.uploads import UploadedContents
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.past_jobs import PastJobs
from benchpool_scheduler.store.records import DropJob, JobRecord

DAY_S = 24 * 3600.0
PRUNED, PAUSE_S = 50, 0.05
"""Maximum number of ended jobs removed at once, and pause after that, in seconds."""

LOOKED_AT = 500
"""Maximum number of jobs whose files of one kind are removed at once."""

PARTS: tuple[Part, ...] = get_args(Part)


class RetentionCleaner:
    """Cleaner that removes by age and number, as ``retention`` of the configuration sets."""

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        objects: UploadedContents,
        past: PastJobs,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._objects = objects
        self._past = past

    async def clean(self) -> None:
        """Remove old data, except in safe mode.

        Errors: OSError when the use of old jobs could not be saved; then they are kept.
        """
        if not self._observed.now.safe_mode.quiet:
            return
        await self._ledger.whole.wait()
        keep, now = self._observed.now.configuration.retention, self._observed.settings.clock.now()
        jobs = list(self._ledger.jobs())
        old = await asyncio.to_thread(_old, jobs, keep.ended_jobs, now - keep.ended_days * DAY_S)
        awaited = self._ledger.counters.dependents
        old = [job for job in old if job.id not in awaited]
        for first in range(0, len(old), PRUNED):
            await self._drop(old[first : first + PRUNED], now)
            await asyncio.sleep(PAUSE_S)
        for part in PARTS:
            if keep.days_of(part) < keep.ended_days:
                await self._prune(part, now - keep.days_of(part) * DAY_S)
        await asyncio.to_thread(self._past.expire, now - keep.use_days * DAY_S)
        await self._objects.collect(now - keep.uploads_days * DAY_S)

    async def _drop(self, jobs: list[JobRecord], now: float) -> None:
        kept = [past_job(self._ledger, job) for job in jobs if SELF_TEST not in job.spec.tags]
        await asyncio.to_thread(
            self._past.add, [job for job in kept if job.ran_s > 0 or job.held], now
        )
        for job in jobs:
            await self._runtime.forget(job.id)
        async with self._ledger.lock:
            await self._ledger.commit(*(DropJob(job.id) for job in jobs))

    async def _prune(self, part: Part, before: float) -> None:
        ended = [
            job.id
            for job in self._ledger.jobs()
            if job.ended is not None and job.ended < before and job.attempt
        ]
        for first in range(0, len(ended), LOOKED_AT):
            await self._runtime.prune(ended[first : first + LOOKED_AT], part)
            await asyncio.sleep(PAUSE_S)


def _old(jobs: Iterable[JobRecord], most: int, before: float) -> list[JobRecord]:
    """Return the ended jobs to remove: beyond the newest ``most``, or ended before ``before``."""
    ended = (job for job in jobs if not job.live)
    return [
        job for number, job in enumerate(ended) if number >= most or (job.ended or 0.0) < before
    ]
