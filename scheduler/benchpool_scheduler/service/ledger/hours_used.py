"""GPU-hours that users and projects have used in this calendar month.

They are counted from the records: a worker's GPUs from the start of its run to its end, a bench's
from reservation to release. Jobs count for their project, all projects above it and their user,
benches for their user. Use is cut at the ends of the month. Removed records are read from the files
of ended use (``store.past_jobs``). Sums are whole milliseconds, so that adding and subtracting the
same use leaves no remainder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.configuration.months import day_of, month_of
from benchpool_scheduler.core.cluster.budgets_in_time import HourOutlook
from benchpool_scheduler.core.fairness.gpu_hours import (
    AccountKind,
    HourAccount,
    MonthUse,
    first_exhausted,
    seconds_between,
)
from benchpool_scheduler.core.fairness.hour_standing import AccountKey, standing_of
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.monthly_hours import MonthlyHours
from benchpool_scheduler.store.past_jobs import HeldInterval, PastBench, PastJobs
from benchpool_scheduler.store.records import AttemptRecord, LeaseRecord

log = logging.getLogger(__name__)

Gone = tuple[str, tuple[AccountKey, ...], tuple[HeldInterval, ...]]
"""Use of a removed record: its ID, the accounts it counts for, what it held."""


def held_by(attempts: Iterable[AttemptRecord]) -> Iterator[HeldInterval]:
    """Yield the intervals in which the workers of a job held GPUs."""
    for attempt in attempts:
        for worker in attempt.workers:
            if worker.started is not None and worker.gpus:
                yield HeldInterval(worker.started, worker.ended, len(worker.gpus))


def tally(held: Iterable[HeldInterval], month: tuple[float, float]) -> MonthUse:
    """Return the use of one job or bench in a month."""
    found = MonthUse()
    for one in held:
        if one.ended is not None:
            lasted_s = seconds_between(one.begun, one.ended, month)
            found = found.plus(MonthUse(over_ms=one.gpus * round(lasted_s * 1000)))
        else:
            begun_ms = round(max(0.0, one.begun - month[0]) * 1000)
            found = found.plus(MonthUse(gpus=one.gpus, begun_ms=one.gpus * begun_ms))
    return found


class HoursUsed:
    """Use in the current month, kept in step with the ledger.

    Args:
        clock: Returns epoch seconds.
        past: Store of the use of removed records.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], float], past: PastJobs) -> None:
        self._ledger = ledger
        self._clock = clock
        self._past = past
        self._month, self._zone, self._whole = (0.0, 0.0), "", False
        self._uses: dict[str, tuple[tuple[AccountKey, ...], MonthUse]] = {}
        self._sums: dict[AccountKey, MonthUse] = {}
        self._returned: dict[str, float] = {}
        ledger.jobs_changed.subscribe(self._see_jobs)
        ledger.lease_taken.subscribe(self._see_lease)
        ledger.lease_returned.subscribe(self._see_lease)
        ledger.before_return = self._keep

    # ------------------------------------------------------------------ reading

    async def refresh(self, configuration: Configuration) -> None:
        """Count again if a new month has begun or older records have been loaded."""
        zone, now = configuration.gpu_hours.time_zone, self._clock()
        whole = self._ledger.whole.is_set()
        valid = self._month[0] <= now < self._month[1]
        if not valid or zone != self._zone or whole != self._whole:
            month = month_of(now, zone)
            gone = await asyncio.to_thread(self._read, month[0])
            self._month, self._zone, self._whole = month, zone, whole
            self._count(gone)

    def renewed(self) -> float:
        """Return when the next month begins, in epoch seconds."""
        return self._month[1]

    def renewal_day(self) -> str:
        """Return the day on which the next month begins, as text for users."""
        return day_of(self._month[1], self._zone or "UTC")

    def account(
        self, kind: AccountKind, name: str, configuration: Configuration
    ) -> HourAccount | None:
        """Return the use of a user or project, or None without a budget."""
        budget = configuration.hour_budgets.of((kind, name))
        if not budget.bounds:
            return None
        return HourAccount(kind, name, budget, self._hours(self._totals(configuration), kind, name))

    def check(self, project: str, user: str, configuration: Configuration) -> None:
        """Refuse a job if a hard budget is used up. Errors: Refused ``gpu-hours``."""
        over = configuration.hour_budgets.accounts_of(project, user)
        accounts = (self.account(kind, name, configuration) for kind, name in over)
        full = first_exhausted(it for it in accounts if it is not None)
        if full is None:
            return
        hard, day = full.budget.hard or 0.0, self.renewal_day()
        text = (
            f"The {full.kind} {full.name} has used {full.used_h:.1f} of the {hard:g} GPU-hours "
            f"that it may use in a month: submit again from {day} on, or ask an administrator for "
            "more."
        )
        if not hard:
            text = (
                f"The {full.kind} {full.name} may use no GPU-hours: ask an administrator for some."
            )
        raise Refused(
            text,
            code="gpu-hours",
            field="project" if full.kind == "project" else None,
            numbers={
                "used_gpu_h": round(full.used_h, 2),
                "limit_gpu_h": hard,
                "renewed": day,
                full.kind: full.name,
            },
        )

    def monthly(self, configuration: Configuration) -> MonthlyHours:
        """Return the users and projects that are past a budget."""
        users = {*configuration.gpu_hours.users, *(name for of, name in self._sums if of == "user")}
        users |= {job.user for job in self._ledger.live()}
        named: list[tuple[AccountKind, str]] = [("user", user) for user in sorted(users)]
        named += [("project", str(it.name)) for it in configuration.projects]
        totals = self._totals(configuration)
        found = [
            HourAccount(kind, name, budget, self._hours(totals, kind, name))
            for kind, name in named
            if (budget := configuration.hour_budgets.of((kind, name))).bounds
        ]
        return MonthlyHours(self.renewal_day(), standing_of(found))

    def outlook(self, configuration: Configuration) -> HourOutlook | None:
        """Return the use and budgets for forecasts, or None without any budget."""
        budgets = configuration.hour_budgets
        return HourOutlook(budgets, self._totals(configuration)) if budgets.bounds else None

    def _totals(self, configuration: Configuration) -> dict[AccountKey, MonthUse]:
        """Return the use of each user, and of each project including the projects below it."""
        found: dict[AccountKey, MonthUse] = {}
        for (kind, name), use in self._sums.items():
            above = [name]
            if kind == "project":
                above += [str(it.name) for it in configuration.upwards(name)][1:]
            for each in above:
                found[kind, each] = found.get((kind, each), MonthUse()).plus(use)
        return found

    def _hours(self, totals: dict[AccountKey, MonthUse], kind: AccountKind, name: str) -> float:
        return totals.get((kind, name), MonthUse()).hours(self._clock() - self._month[0])

    # ------------------------------------------------------------------ counting

    def _count(self, gone: Iterable[Gone]) -> None:
        self._uses.clear()
        self._sums.clear()
        self._returned.clear()
        for id_, keys, held in gone:
            self._put(id_, keys, held)
        begun = self._month[0]
        self._see_jobs([it.id for it in self._ledger.jobs() if (it.ended or begun) >= begun])
        for lease in self._ledger.leases():
            self._see_lease(lease)

    def _see_jobs(self, jobs: Collection[str]) -> None:
        for name in jobs:
            job = self._ledger.job(name)
            if job is not None and job.attempt:
                keys: tuple[AccountKey, ...] = (("project", job.project), ("user", job.user))
                self._put(name, keys, held_by(self._ledger.attempts(name)))

    def _see_lease(self, lease: LeaseRecord) -> None:
        there = self._ledger.lease(lease.id) is not None
        ended = None if there else self._returned.pop(lease.id, self._clock())
        held = HeldInterval(lease.since, ended, len(lease.gpus))
        self._put(lease.id, (("user", lease.user),), [held] if lease.gpus else [])

    def _put(self, id_: str, keys: tuple[AccountKey, ...], held: Iterable[HeldInterval]) -> None:
        before, now = self._uses.get(id_), tally(held, self._month)
        if before is not None:
            self._add(*before, -1)
        self._uses[id_] = keys, now
        self._add(keys, now, 1)

    def _add(self, keys: tuple[AccountKey, ...], use: MonthUse, sign: int) -> None:
        for key in keys:
            self._sums[key] = self._sums.get(key, MonthUse()).plus(use, sign)

    # ------------------------------------------------------------------ removed records

    async def _keep(self, leases: Sequence[LeaseRecord]) -> None:
        """Save the use of benches that are about to be released."""
        now = self._clock()
        self._returned.update((lease.id, now) for lease in leases)
        kept = [PastBench(it.id, it.user, len(it.gpus), it.since, now) for it in leases if it.gpus]
        try:
            await asyncio.to_thread(self._past.add, kept, now)
        except OSError:  # a full disk must not block the release
            log.exception("bench use could not be saved; it counts until the next start")

    def _read(self, since: float) -> list[Gone]:
        found: list[Gone] = []
        for job in self._past.read(since):
            found.append((job.id, (("project", job.project), ("user", job.user)), job.held))
        for bench in self._past.read_benches(since):
            held = HeldInterval(bench.since, bench.until, bench.gpus)
            found.append((bench.bench, (("user", bench.user),), (held,)))
        return found
