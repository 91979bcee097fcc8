"""A schedule over years of scripted time, through the real runner and files of the service.

Only the clock, the jobs and their acceptance are stand-ins. The service is stopped for hours,
restarted, and killed before and after it accepts a job. What must happen follows from a scan of the
zone's clock at every minute, independent of the product's search for times.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.schedules import ScheduledOutcome
from benchpool_scheduler.schedules.cron_times import folder_name
from benchpool_scheduler.service.jobs.schedules.schedule_book import ScheduleBook
from benchpool_scheduler.service.jobs.schedules.schedule_runner import LOOKS_S, ScheduleRunner
from benchpool_scheduler.store.schedule_files import ScheduleRecord
from benchpool_support.clocks import FakeClock

T = TypeVar("T")

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
ID = "a" * 26
RESTARTS = 0.02
"""Probability of a restart before a look."""
FIRST, LAST = (0, 0, 1, 1, 0), (59, 23, 31, 12, 6)
"""Smallest and largest number of each field of cron."""


def numbers_of(cron: str) -> list[set[int]]:
    """Return the numbers that each of the five fields of cron stands for.

    >>> [sorted(one)[:3] for one in numbers_of("*/20 8-10 * * 1,5")]
    [[0, 20, 40], [8, 9, 10], [1, 2, 3], [1, 2, 3], [1, 5]]
    """
    return [_numbers(*one) for one in zip(cron.split(), FIRST, LAST, strict=True)]


def _numbers(text: str, first: int, last: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        listed, _, step = part.partition("/")
        low, _, high = (f"{first}-{last}" if listed == "*" else listed).partition("-")
        found |= set(range(int(low), int(high or low) + 1, int(step or 1)))
    return found


def due_times(cron: str, zone: ZoneInfo, begin: int, end: int) -> list[int]:
    """Return the times after ``begin`` up to ``end``, from the clock at every minute.

    A time of every hour runs whenever the clock shows it. Any other time runs at the first minute
    at which the clock shows it or more.
    """
    minutes, hours, days, months, weekdays = numbers_of(cron)
    scan = range(begin - DAY_S, end + DAY_S, MINUTE_S)
    shown = [datetime.fromtimestamp(at, zone).replace(tzinfo=None) for at in scan]

    def is_day(day: date) -> bool:
        return day.day in days and day.month in months and day.isoweekday() % 7 in weekdays

    if len(hours) == len(range(24)):
        pairs = zip(scan, shown, strict=True)
        found = {at for at, it in pairs if it.minute in minutes and is_day(it.date())}
    else:
        highest = list(accumulate(shown, max))
        wanted = (
            datetime.combine(day, time(hour, minute))
            for day in {it.date() for it in shown}
            if is_day(day)
            for hour in hours
            for minute in minutes
        )
        places = (bisect_left(highest, it) for it in wanted)
        found = {scan[place] for place in places if place < len(scan)}
    return sorted(at for at in found if begin < at <= end)


def changes(zone: ZoneInfo, begin: int, end: int) -> list[int]:
    """Return the times at which the clock of a zone changes, from ``begin`` to ``end``."""
    found = []
    for day in range(begin, end, DAY_S):
        after = _offset(day + DAY_S, zone)
        if _offset(day, zone) != after:
            within = range(day, day + DAY_S)
            place = bisect_left(within, True, key=lambda at: _offset(at, zone) == after)
            found.append(within[place])
    return found


def _offset(at: int, zone: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()


@dataclass(frozen=True, slots=True)
class Outage:
    """Time in which the service does not run, in epoch seconds."""

    begin: float
    end: float


class _InPlace(ThreadPoolExecutor):
    """Executor that runs the writes of files at once, without a change of threads."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class Killed(BaseException):
    """The service's process ends here."""


@dataclass
class AcceptedJobs:
    """Jobs of a pool in which each job has ended when the next time comes.

    Attributes:
        at: Time of acceptance of each job, by its folder, in order.
        kill: ``before`` or ``after``: where the service is killed at the next acceptance.
    """

    clock: FakeClock
    at: list[tuple[str, float]] = field(default_factory=list)
    kill: str = ""
    known: set[str] = field(default_factory=set)

    def job(self, job: str) -> object:
        """Return a job that has ended, or None."""
        known = SimpleNamespace(id=job, live=False, state="succeeded")
        return known if job in self.known else None

    async def accept_as(self, _caller: object, submission: JobSubmission, job: str) -> None:
        """Accept a job once, and be killed if that is planned."""
        kill, self.kill = self.kill, ""
        if kill == "before":
            raise Killed
        if job not in self.known:
            self.known.add(job)
            self.at.append((str(submission.output_dir).rpartition("/")[2], self.clock.now()))
        if kill == "after":
            raise Killed


@dataclass(frozen=True, slots=True)
class ScheduleCounts:
    """Times of a schedule by what became of them.

    Attributes:
        sent: Sent at the next look. ``late``: sent by the first look after an outage.
        replaced: Recorded as missed, because a later time of the same outage was sent.
        missed: Neither. ``doubled``: jobs beyond the first of a time, and jobs of no time.
    """

    due: int = 0
    sent: int = 0
    late: int = 0
    replaced: int = 0
    missed: int = 0
    doubled: int = 0


class ScheduleYears:
    """A schedule from ``begin`` to ``end``, looked at as by the service, with outages and kills.

    Args:
        folder: An empty folder for the service's files.
        chance: Random numbers of the moments of looks, outages and kills.
        outages: Times without the service.
        kills: Probability that a look ends in a kill, if it accepts a job.
    """

    def __init__(
        self,
        folder: Path,
        cron: str,
        zone: str,
        begin: int,
        end: int,
        chance: random.Random,
        outages: Sequence[Outage] = (),
        kills: float = 0.02,
    ) -> None:
        self._folder, self._cron, self._zone = folder, cron, zone
        self._begin, self._end, self._chance = begin, end, chance
        self._outages = sorted(outages, key=lambda one: one.begin)
        self._clock = FakeClock(float(begin))
        self._jobs = AcceptedJobs(self._clock)
        self._kill_chance = kills
        self._replaced: set[int] = set()
        self.kills = 0

    async def run(self) -> ScheduleCounts:
        """Run it, and return what became of its times."""
        asyncio.get_running_loop().set_default_executor(_InPlace())
        due = due_times(self._cron, ZoneInfo(self._zone), self._begin, self._end)
        book = await self._service()
        await book.put(self._record())
        for at in self._looks(due):
            self._clock.pass_s(at - self._clock.now())
            if self._chance.random() < RESTARTS:
                book = await self._service()
            if self._chance.random() < self._kill_chance:
                self._jobs.kill = self._chance.choice(["before", "after"])
            book = await self._looked(book)
            self._note_replaced(book)
        return self._counts(due)

    async def _looked(self, book: ScheduleBook) -> ScheduleBook:
        """Look at the schedule, and return the book of the service that runs afterwards."""
        try:
            await self._runner(book).look()
        except Killed:
            self.kills += 1
            book = await self._service()
            await self._runner(book).look()
        return book

    async def _service(self) -> ScheduleBook:
        book = ScheduleBook(self._folder, lambda _topic, _problem: None)
        await book.open()
        return book

    def _runner(self, book: ScheduleBook) -> ScheduleRunner:
        ids = iter(lambda: f"{self._chance.getrandbits(100):026x}"[:26], "")
        settings = SimpleNamespace(clock=self._clock, new_id=lambda: next(ids))
        users = SimpleNamespace(users=())
        now = SimpleNamespace(users=users, hub_user=lambda _name: None)
        observed = SimpleNamespace(settings=settings, now=now)
        return ScheduleRunner(
            cast("Any", self._jobs), cast("Any", observed), cast("Any", self._jobs), book
        )

    def _record(self) -> ScheduleRecord:
        entry = CommandEntry(["train"])
        return ScheduleRecord(
            id=ID, name="nightly", user="susan", project="vision", created=float(self._begin),
            when=self._cron, cron=self._cron, zone=self._zone, seen=float(self._begin),
            submission=JobSubmission(entry=entry, output_dir="/out"),
        )  # fmt: skip

    def _looks(self, due: Sequence[int]) -> Iterator[float]:
        """Yield the moments of looks: soon after each time, and some in between."""
        for before, at in pairwise([self._begin, *due, self._end]):
            moments = [self._chance.uniform(before, at) for _ in range(2)]
            moments += [at - 1.0, at + self._chance.uniform(0, LOOKS_S)]
            moments += [one.end for one in self._outages if before < one.end <= at]
            yield from sorted(one for one in moments if self._is_up(one) and one > before)

    def _is_up(self, at: float) -> bool:
        place = bisect_left(self._outages, at, key=lambda one: one.end)
        return (
            place == len(self._outages)
            or at < self._outages[place].begin
            or (at == self._outages[place].end)
        )

    def _note_replaced(self, book: ScheduleBook) -> None:
        for one in book.all():
            times = (it for it in one.last if it.outcome is ScheduledOutcome.MISSED)
            self._replaced.update(int(it.at) for it in times)

    def _counts(self, due: Sequence[int]) -> ScheduleCounts:
        jobs = Counter(folder for folder, _ in self._jobs.at)
        accepted = dict(self._jobs.at)
        found: Counter[str] = Counter(due=len(due))
        for at in due:
            moment = accepted.get(folder_name(at, self._zone))
            if moment is None:
                found["replaced" if at in self._replaced else "missed"] += 1
            else:
                found["sent" if moment - at <= LOOKS_S else "late"] += 1
        found["doubled"] = sum(jobs.values()) - found["sent"] - found["late"]
        return ScheduleCounts(**found)


def seconds(year: int, month: int = 1, day: int = 1) -> int:
    """Return the beginning of a day in UTC, in epoch seconds."""
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())
