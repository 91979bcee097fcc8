"""Background task that turns due times of schedules into jobs and records outcomes."""

from __future__ import annotations

import asyncio
import logging

from msgspec.structs import replace

from benchpool_scheduler.contract.schedules import ScheduledOutcome
from benchpool_scheduler.errors import BenchpoolError, Unavailable
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.schedules.cron_times import folder_name
from benchpool_scheduler.schedules.decisions import MOST_KEPT, due
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.schedules.schedule_book import ScheduleBook
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.schedule_files import ScheduleRecord, TimeRecord

log = logging.getLogger(__name__)

LOOKS_S = 15.0
"""Poll interval for due times, in seconds; times of schedules are whole minutes."""
MISSED = "The scheduler did not run then. A later missed time was sent instead."


class ScheduleRunner:
    """Background task that processes all schedules in turn."""

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, admission: Admission, book: ScheduleBook
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._admission = admission
        self._book = book
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """Process all schedules until cancelled."""
        await self._ledger.whole.wait()
        while True:
            await self.look()
            await asyncio.sleep(LOOKS_S)

    async def look(self) -> None:
        """Process due times; a failure of one schedule does not affect the next ones."""
        for schedule in list(self._book.all()):
            try:
                async with self._one_at_a_time:
                    await self._carry_on(schedule.id)
            except BenchpoolError as error:
                log.warning("schedule %s: %s", schedule.id, error.message)
            except Exception:
                log.exception("schedule %s could not be processed", schedule.id)

    async def _carry_on(self, of: str) -> None:
        schedule, now = self._book.get(of), self._observed.settings.clock.now()
        if schedule is None:
            return
        kept = self._paused_or_not(self._closed(schedule))
        come = due(kept.cron, kept.zone, kept.seen, now)
        if come.now is not None or kept.paused is not None:
            kept = self._settled(kept)
        if come.now is not None:
            kept = replace(kept, seen=come.now)
            if kept.paused is None:
                missed = [
                    TimeRecord(at, ScheduledOutcome.MISSED, text=MISSED) for at in come.missed
                ]
                kept = _with(kept, self._next(kept, come.now), *missed)
        if kept != schedule:
            await self._book.put(kept)
        await self._accept_newest(kept)

    def _settled(self, schedule: ScheduleRecord) -> ScheduleRecord:
        """Return the schedule without a job that is still to be accepted."""
        newest = schedule.last[0] if schedule.last else None
        if newest is None or newest.job is None or newest.accepted:
            return schedule
        if self._ledger.job(newest.job) is not None:
            found = replace(newest, accepted=True, text="")
        elif newest.text:
            found = TimeRecord(newest.at, ScheduledOutcome.REFUSED, text=newest.text)
        else:
            found = TimeRecord(newest.at, ScheduledOutcome.MISSED, text=MISSED)
        return replace(schedule, last=(found, *schedule.last[1:]))

    def _next(self, schedule: ScheduleRecord, at: float) -> TimeRecord:
        """Return the planned outcome of a time, with the ID of its future job."""
        before = next((it for it in schedule.last if it.job is not None), None)
        job = None if before is None or before.job is None else self._ledger.job(before.job)
        if job is not None and job.live:
            text = f"The previous job, {job.id[:8]}, had not ended."
            return TimeRecord(at, ScheduledOutcome.SKIPPED, text=text)
        return TimeRecord(at, ScheduledOutcome.SENT, job=self._observed.settings.new_id())

    async def _accept_newest(self, schedule: ScheduleRecord) -> None:
        """Accept the job of the newest time, also after a restart in between."""
        newest = schedule.last[0] if schedule.last else None
        if newest is None or newest.job is None or newest.accepted or schedule.paused is not None:
            return
        folder = schedule.submission.output_dir
        below = f"{folder}/{folder_name(newest.at, schedule.zone)}" if folder else None
        sent = replace(schedule.submission, key=None, name=schedule.name, output_dir=below)
        try:
            await self._admission.accept_as(self._caller(schedule), sent, newest.job)
        except Unavailable as error:  # tried again at the next look, until the next time
            found = replace(newest, text=visible(error.message))
        except BenchpoolError as error:
            found = TimeRecord(newest.at, ScheduledOutcome.REFUSED, text=visible(error.message))
        else:
            found = replace(newest, accepted=True, text="")
        if found != newest:
            await self._book.put(replace(schedule, last=(found, *schedule.last[1:])))

    def _closed(self, schedule: ScheduleRecord) -> ScheduleRecord:
        """Return the schedule with the final states of jobs that have ended."""
        return replace(schedule, last=tuple(map(self._ended, schedule.last)))

    def _ended(self, time: TimeRecord) -> TimeRecord:
        job = None if time.job is None or time.ended is not None else self._ledger.job(time.job)
        return time if job is None or job.live else replace(time, ended=str(job.state))

    def _paused_or_not(self, schedule: ScheduleRecord) -> ScheduleRecord:
        """Pause a schedule while the Hub does not know its owner."""
        seen = self._observed.now
        gone = bool(seen.users.users) and seen.hub_user(schedule.user) is None
        gone = gone and not schedule.by_service
        if gone and schedule.paused is None:
            why = f"The Hub no longer knows {schedule.user}."
            return replace(schedule, paused=why, owner_gone=True)
        if schedule.owner_gone and not gone:
            return replace(schedule, paused=None, owner_gone=False)
        return schedule

    def _caller(self, schedule: ScheduleRecord) -> Caller:
        """Return the schedule's owner with the present rights."""
        if schedule.by_service:
            return Caller(schedule.user, kind="service")
        known = self._observed.now.hub_user(schedule.user)
        if known is None:
            return Caller(schedule.user)
        return Caller(schedule.user, admin=known.admin, groups=frozenset(known.groups))


def _with(schedule: ScheduleRecord, *times: TimeRecord) -> ScheduleRecord:
    return replace(schedule, last=(*times, *schedule.last)[:MOST_KEPT])
