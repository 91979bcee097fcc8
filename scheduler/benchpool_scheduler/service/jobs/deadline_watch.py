"""Background task that detects deadlines that can no longer be met, and records since when."""

from __future__ import annotations

import asyncio
import logging

from msgspec.structs import replace

from benchpool_scheduler.core.forecast.deadlines import LOST, DeadlineState
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.views import deadlines
from benchpool_scheduler.service.views.estimates import Estimates
from benchpool_scheduler.store.records import JobRecord

log = logging.getLogger(__name__)

LOOK_S = 30.0


class DeadlineWatch:
    """Periodic check of jobs against their deadlines.

    A finding is written once into the job's record, from which notifications, pages and streams
    take it. The mark is removed if the deadline can be met again, so that a second loss is
    reported, too.
    """

    def __init__(self, ledger: Ledger, observed: SchedulerState, estimates: Estimates) -> None:
        self._ledger = ledger
        self._observed = observed
        self._estimates = estimates

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except BenchpoolError as failed:
                log.warning("deadlines could not be checked: %s; retrying", failed)
            except Exception:
                log.exception("deadlines could not be checked; retrying")

    async def look(self) -> None:
        """Check all unfinished jobs with a deadline, and save changes."""
        if self._observed.now.safe_mode.held_because is not None:
            return  # no job starts in safe mode, so there are no estimates
        if not any(self._changed(job) for job in self._ledger.live()):
            return
        async with self._ledger.lock:
            work = UnitOfWork(self._ledger)
            for job in self._ledger.live():
                if (changed := self._changed(job)) is not None:
                    work.save_job(changed)
            await self._ledger.commit(*work.changes())

    def _changed(self, job: JobRecord) -> JobRecord | None:
        """Return the job with its changed deadline mark, or None if nothing has changed."""
        if job.spec.deadline is None:
            return None
        now = self._observed.settings.clock.now()
        found = deadlines.standing(self._ledger, job, self._estimates.of(job), now)
        state = None if found is None else DeadlineState(found.state.value)
        if job.late_since is None and state in LOST:
            return replace(job, late_since=now)
        if job.late_since is not None and state is DeadlineState.WILL_BE_MET:
            return replace(job, late_since=None)
        return None
