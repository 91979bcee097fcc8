"""Where the GPU-hours of a range of time went: the recorded history, as callers may see it.

GPU time is exact: from the record of who had which GPU. What the GPUs did in it is measured, and
told with what part of the time was. Waits and preemptions are those of jobs that are still kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Literal
from weakref import WeakValueDictionary

from benchpool_scheduler.accounting.division import Entry
from benchpool_scheduler.accounting.ranges import Range, asked
from benchpool_scheduler.accounting.report import JobFigures, notes, rows_of, sentence
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.contract.use import UseQuery, UseReport
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.use_reader import UseReader
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.store.records import JobRecord, PreemptionRecord

DAY_S = 24 * 3600.0
MINUTE_S = 60.0
"""A range that begins by less before what is kept is one that was asked for just now."""
BUCKETS = 1500
"""At most about this many buckets of samples are read for each GPU: minutes of a day."""


class UseReports:
    """Reports, one at a time: a long one keeps a core busy. Who asks for many waits by oneself."""

    def __init__(self, ledger: Ledger, observed: Observed, reader: UseReader) -> None:
        self._ledger = ledger
        self._observed = observed
        self._reader = reader
        self._busy = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def report(self, caller: Caller, query: UseQuery) -> UseReport:
        """Return where GPU-hours went. Errors: InvalidInput for a range that is none."""
        now, configuration = self._observed.settings.clock.now(), self._observed.now.configuration
        span = asked(query, now, configuration.gpu_hours.time_zone)
        # At most one of each caller stands in line for the core.
        turn = self._turns.setdefault(caller.name, asyncio.Lock())
        async with turn, self._busy:
            recorded = await self._reader.read(span.begin, span.end, step_s=span.length_s / BUCKETS)
            entries = await asyncio.to_thread(recorded.entries)
        if not rights.rules_all(caller):
            entries = [it for it in entries if _may_see(caller, it, configuration)]
        figures = self._figures(caller, span, configuration)
        prices = configuration.prices
        rows, total = rows_of(entries, query.by, figures, prices.gpu_hour)
        kept_since = now - configuration.retention.ended_days * DAY_S
        forgotten = kept_since > max(span.begin, recorded.begun) + MINUTE_S
        return UseReport(
            text=sentence(total, span.words()),
            notes=list(
                notes(
                    total,
                    begun=_day(span, recorded.begun) if recorded.begun > span.begin else None,
                    waits_since=_day(span, kept_since) if forgotten else None,
                )
            ),
            by=query.by,
            begin=span.at(span.begin),
            end=span.at(span.end),
            time_zone=span.zone.key,
            sight=_sight(caller, configuration),
            currency=prices.currency,
            rows=rows,
            total=total,
        )

    def _figures(self, caller: Caller, span: Range, configuration: Configuration) -> JobFigures:
        """Return waits and preemptions of the jobs that the caller may see."""

        def seen(job: JobRecord | None) -> tuple[str, str] | None:
            if job is None or not rights.may_use(caller, job, configuration):
                return None
            return job.user, job.project

        waits: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for job in self._ledger.jobs():
            if not span.begin <= (job.started or 0.0) < span.end or SELF_TEST in job.spec.tags:
                continue
            if job.started is not None and (whose := seen(job)) is not None:
                waits[whose].append(job.started - job.submitted)
        found = JobFigures(waits, Counter(), Counter())
        for pause in self._ledger.preemptions_since(span.begin):
            if pause.at < span.end:
                self._count(found, pause, seen)
        return found

    def _count(
        self,
        found: JobFigures,
        pause: PreemptionRecord,
        seen: Callable[[JobRecord | None], tuple[str, str] | None],
    ) -> None:
        claimant = None if pause.claimant is None else self._ledger.job(pause.claimant)
        if (victim := seen(self._ledger.job(pause.job))) is not None:
            found.given[victim] += 1
        if (winner := seen(claimant)) is not None:
            found.taken[winner] += 1


def _may_see(caller: Caller, entry: Entry, configuration: Configuration) -> bool:
    who = entry.occupancy.occupant
    return rights.may_see_use(caller, who.user, who.project, configuration)


def _sight(caller: Caller, configuration: Configuration) -> Literal["pool", "projects", "own"]:
    if rights.rules_all(caller):
        return "pool"
    return "projects" if rights.led_projects(caller, configuration) else "own"


def _day(span: Range, at: float) -> str:
    return f"{span.at(at):%Y-%m-%d %H:%M} ({span.zone.key})"
