"""Reports of GPU-hours in a range of time, limited to what the caller may see.

GPU time is exact, since it comes from the record of holders. The activity of the GPUs is measured,
and the report states the measured part of the time. Waits and preemptions include removed jobs
whose use is still kept (``store.past_jobs``).
"""

from __future__ import annotations

import asyncio
from typing import Literal
from weakref import WeakValueDictionary

from benchpool_scheduler.accounting.division import Entry
from benchpool_scheduler.accounting.ranges import Range, asked
from benchpool_scheduler.accounting.report import notes, rows_of, sentence
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.use import UseQuery, UseReport
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.job_figures import figures_of
from benchpool_scheduler.service.administration.use_reader import UseReader
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.past_jobs import PastJobs

DAY_S = 24 * 3600.0
MINUTE_S = 60.0
"""Tolerance for a range that begins before the record, in seconds; it may just have been
requested.
"""
BUCKETS = 1500
"""Approximate maximum number of sample buckets read per GPU: the minutes of a day."""


class UseReports:
    """Reports, one at a time, since a long one keeps a core busy; each caller has one in the
    queue.
    """

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, reader: UseReader, past: PastJobs
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._reader = reader
        self._past = past
        self._busy = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def report(self, caller: Caller, query: UseQuery) -> UseReport:
        """Return where GPU-hours went. Errors: InvalidInput for an invalid range."""
        now, configuration = self._observed.settings.clock.now(), self._observed.now.configuration
        span = asked(query, now, configuration.gpu_hours.time_zone)
        # Each caller has at most one request in the queue for the core.
        turn = self._turns.setdefault(caller.name, asyncio.Lock())
        async with turn, self._busy:
            recorded = await self._reader.read(span.begin, span.end, step_s=span.length_s / BUCKETS)
            entries = await asyncio.to_thread(recorded.entries)
            removed = await asyncio.to_thread(lambda: list(self._past.read(span.begin)))
        if not rights.rules_all(caller):
            entries = [it for it in entries if _may_see(caller, it, configuration)]
        figures = figures_of(self._ledger, caller, span.begin, span.end, configuration, removed)
        prices = configuration.prices
        rows, total = rows_of(entries, query.by, figures, prices.gpu_hour)
        keep = configuration.retention
        lost_since = now - keep.ended_days * DAY_S
        waits_since = now - max(keep.ended_days, keep.use_days) * DAY_S
        first = max(span.begin, recorded.begun) + MINUTE_S
        return UseReport(
            text=sentence(total, span.words()),
            notes=list(
                notes(
                    total,
                    begun=_day(span, recorded.begun) if recorded.begun > span.begin else None,
                    lost_since=_day(span, lost_since) if lost_since > first else None,
                    waits_since=_day(span, waits_since) if waits_since > first else None,
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


def _may_see(caller: Caller, entry: Entry, configuration: Configuration) -> bool:
    who = entry.occupancy.occupant
    return rights.may_see_use(caller, who.user, who.project, configuration)


def _sight(caller: Caller, configuration: Configuration) -> Literal["pool", "projects", "own"]:
    if rights.rules_all(caller):
        return "pool"
    return "projects" if rights.led_projects(caller, configuration) else "own"


def _day(span: Range, at: float) -> str:
    return f"{span.at(at):%Y-%m-%d %H:%M} ({span.zone.key})"
