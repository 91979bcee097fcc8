"""Operations on schedules with access checks: create, read, pause, resume, remove."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from msgspec.structs import replace

from benchpool_scheduler.contract.schedules import (
    Schedule,
    ScheduledTime,
    SchedulePreview,
    ScheduleRequest,
    SchedulesQuery,
)
from benchpool_scheduler.errors import InvalidInput, Refused, TooMany
from benchpool_scheduler.phrases import count
from benchpool_scheduler.schedules.cron_times import cron_of, times_after, zone_of
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.lookup import visible_record
from benchpool_scheduler.service.jobs.schedules.schedule_book import ScheduleBook
from benchpool_scheduler.service.jobs.schedules.schedule_runner import ScheduleRunner
from benchpool_scheduler.service.jobs.uploads import UploadedContents
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.schedule_files import FOLDER, ScheduleRecord, TimeRecord

MOST = 50
"""Maximum number of schedules per user."""
SHOWN = 5
"""Number of upcoming times shown."""
LEAST_BETWEEN_S = 300.0
"""Minimum interval between times, in seconds."""


class Schedules:
    """Operations on schedules; ``schedule`` is an ID, or a unique prefix of at least 4 characters.

    Attributes:
        book: All known schedules. ``runner``: submits due jobs.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        book: ScheduleBook,
        runner: ScheduleRunner,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._admission = admission
        self.book = book
        self.runner = runner

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        uploads: UploadedContents,
    ) -> Schedules:
        """Return the operations with a new book and runner; protect the contents of future jobs."""
        book = ScheduleBook(observed.settings.state / "scheduler" / FOLDER, observed.report)
        uploads.needed = book.contents
        return cls(
            ledger, observed, admission, book, ScheduleRunner(ledger, observed, admission, book)
        )

    async def begin(self, caller: Caller, asked: ScheduleRequest) -> Schedule:
        """Accept a schedule; its first job is submitted at its first time.

        Errors: those of submitting a job; InvalidInput for an invalid time.
        """
        known = None if asked.key is None else self.book.by_key(caller.name, asked.key)
        if known is not None:
            _check_repeat(known, asked)
            return self._shown(known)
        schedule = self._checked(caller, asked)
        mine = sum(it.user == caller.name for it in self.book.all())
        if mine >= MOST:
            raise TooMany(
                f"You have {count(mine, 'schedule')}; the limit is {MOST}. Remove one that you no "
                "longer need.",
                code="too-many-schedules",
                numbers={"schedules": mine, "limit": MOST},
            )
        await self.book.put(schedule)
        return self._shown(schedule)

    def preview(self, caller: Caller, asked: ScheduleRequest) -> SchedulePreview:
        """Return the upcoming times of a schedule. Errors: those of ``begin``."""
        schedule = self._checked(caller, asked)
        return SchedulePreview(_text(schedule), schedule.cron, self._next(schedule))

    def select(self, caller: Caller, query: SchedulesQuery) -> list[Schedule]:
        """Return the caller's schedules, newest first; with ``all`` each one that the caller may
        see.
        """
        found = [
            it
            for it in self.book.all()
            if self._may_see(caller, it) and (query.all or it.user == caller.name)
        ]
        return [self._shown(it) for it in found[: query.limit]]

    def show(self, caller: Caller, schedule: str) -> Schedule:
        """Return a schedule. Errors: NotFound, InvalidInput."""
        return self._shown(self._find(caller, schedule))

    async def pause(self, caller: Caller, schedule: str) -> Schedule:
        """Submit no jobs until the schedule is resumed. Errors: NotFound, InvalidInput,
        Unavailable.
        """
        found = self._find(caller, schedule)
        if found.paused is None or found.owner_gone:
            other = None if caller.name == found.user else self._observed.settings.clock.now()
            why = f"{caller.name} paused it."
            found = replace(found, paused=why, owner_gone=False, paused_at=other)
            await self.book.put(found)
        return self._shown(found)

    async def resume(self, caller: Caller, schedule: str) -> Schedule:
        """Submit jobs again from now on; times that were missed are not made up for.

        Errors: NotFound, InvalidInput, Unavailable.
        """
        found = self._find(caller, schedule)
        if found.paused is not None:
            now = self._observed.settings.clock.now()
            found = replace(found, paused=None, owner_gone=False, paused_at=None, seen=now)
            await self.book.put(found)
        return self._shown(found)

    async def remove(self, caller: Caller, schedule: str) -> Schedule:
        """Remove a schedule; its jobs stay as they are. Errors: NotFound, InvalidInput,
        Unavailable.
        """
        found = self._find(caller, schedule)
        await self.book.drop(found)
        return self._shown(found)

    def _checked(self, caller: Caller, asked: ScheduleRequest) -> ScheduleRecord:
        """Return the schedule of a request. Errors: those of ``begin``."""
        if asked.submission.after:
            raise InvalidInput(
                "A schedule sends at its times and cannot wait for other jobs.", field="after"
            )
        if asked.submission.deadline is not None:
            raise InvalidInput(
                "A schedule sends repeatedly, and a deadline is a single time. Leave it out.",
                field="deadline",
            )
        cron, now = cron_of(asked.when), self._observed.settings.clock.now()
        zone_of(asked.zone)
        _check_apart(times_after(cron, asked.zone, now, 10), asked.when)
        name = asked.name or asked.submission.name or "schedule"
        job = self._admission.checked(caller, replace(asked.submission, key=None, name=name))
        return ScheduleRecord(
            id=self._observed.settings.new_id(),
            name=name,
            user=caller.name,
            project=job.project,
            created=now,
            when=asked.when,
            cron=cron,
            zone=asked.zone,
            submission=replace(asked.submission, project=job.project, key=None),
            seen=now,
            key=asked.key,
            by_service=caller.kind == "service",
        )

    def _find(self, caller: Caller, schedule: str) -> ScheduleRecord:
        configuration = self._observed.now.configuration
        return visible_record(self.book, configuration, caller, schedule, "schedules")

    def _may_see(self, caller: Caller, schedule: ScheduleRecord) -> bool:
        configuration = self._observed.now.configuration
        return rights.may_use_of(caller, schedule.user, schedule.project, configuration)

    def _next(self, schedule: ScheduleRecord) -> list[datetime]:
        if schedule.paused is not None:
            return []
        now = self._observed.settings.clock.now()
        zone = zone_of(schedule.zone)
        times = times_after(schedule.cron, schedule.zone, now, SHOWN)
        return [datetime.fromtimestamp(at, zone) for at in times]

    def _shown(self, schedule: ScheduleRecord) -> Schedule:
        return Schedule(
            id=schedule.id,
            name=schedule.name,
            user=schedule.user,
            project=schedule.project,
            when=schedule.when,
            cron=schedule.cron,
            zone=schedule.zone,
            text=_text(schedule),
            created=datetime.fromtimestamp(schedule.created, UTC),
            paused=schedule.paused,
            next=self._next(schedule),
            last=[self._time(schedule, it) for it in schedule.last],
        )

    def _time(self, schedule: ScheduleRecord, time: TimeRecord) -> ScheduledTime:
        job = None if time.job is None else self._ledger.job(time.job)
        return ScheduledTime(
            at=datetime.fromtimestamp(time.at, zone_of(schedule.zone)),
            outcome=time.outcome,
            job=None if job is None else job.id,
            state=time.ended if job is None else str(job.state),
            text=time.text,
        )


def _text(schedule: ScheduleRecord) -> str:
    if schedule.paused is not None:
        return f"Paused: {schedule.paused}"
    when = schedule.when.removeprefix("every ")
    times = f"every {when}" if when[0].isalpha() else f"at {when}"
    return f"Sends {times} ({schedule.zone}), unless its last job has not ended."


def _check_apart(times: Sequence[float], when: str) -> None:
    apart = min((later - at for at, later in pairwise(times)), default=LEAST_BETWEEN_S)
    if apart < LEAST_BETWEEN_S:
        raise InvalidInput(
            f"{when!r} sends every {apart:.0f} s; the minimum is {LEAST_BETWEEN_S:.0f} s "
            "between two times of a schedule.",
            field="when",
            numbers={"seconds": apart, "limit": LEAST_BETWEEN_S},
        )


def _check_repeat(known: ScheduleRecord, asked: ScheduleRequest) -> None:
    same = replace(asked.submission, project=known.project, key=None) == known.submission
    if not same or (known.when, known.zone) != (asked.when, asked.zone):
        raise Refused(
            f"Schedule {known.id[:8]} ({known.name}) of {known.user} already has the key "
            f"{known.key!r} with other content. Choose another key, or none.",
            code="key-taken",
            field="key",
        )
