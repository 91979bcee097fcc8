"""Overview of the pool: the last hour of every GPU, and the GPU-hours of the last day and week.

Results are cached for 15 to 60 seconds, so that many readers cost no more than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from benchpool_scheduler.accounting.cells import GpuCell, cells
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder
from benchpool_scheduler.accounting.report import notes, row_of, sentence
from benchpool_scheduler.accounting.totals import together
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.use import UseBy, UseRow
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration import preemption_ledger
from benchpool_scheduler.service.administration.hourly_use import ByProject, HourlyUse
from benchpool_scheduler.service.administration.job_figures import figures_of
from benchpool_scheduler.service.administration.preemption_ledger import PreemptionCost
from benchpool_scheduler.service.administration.use_reader import UseReader
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.past_jobs import PastJobs

HOUR_S = 3600.0
STEP_S = 600.0
STEPS = 7
"""Number of steps in the grid: the whole steps of the last hour and the current one."""

HOURS = 24
WEEK_HOURS = 7 * 24

KEPT_S, WEEK_KEPT_S = 15.0, 60.0


@dataclass(frozen=True, slots=True)
class HourOfUse:
    """Use of all GPUs in one hour; ``begin`` is in the time zone of the pool."""

    begin: datetime
    row: UseRow


@dataclass(frozen=True, slots=True)
class DayOfUse:
    """Use in the last 24 whole hours and the current one.

    Attributes:
        text: Summary in a sentence; ``notes``: remarks that help to interpret it.
        total: Sum of all hours.
    """

    text: str
    notes: tuple[str, ...]
    hours: tuple[HourOfUse, ...]
    total: UseRow


@dataclass(frozen=True, slots=True)
class WeekOfUse:
    """Use in the last 7 days.

    Attributes:
        rows: Use of each project by name; the empty name is benches and unheld GPUs.
        total: Sum of all rows. ``hours``: the same by the hour.
    """

    rows: Mapping[str, UseRow]
    total: UseRow
    hours: tuple[HourOfUse, ...]


@dataclass(frozen=True, slots=True)
class HourGrid:
    """Last hour of every GPU that has a record, by UUID.

    Attributes:
        begins: Begin of each cell, in epoch seconds; each cell is ``STEP_S`` long.
    """

    begins: tuple[float, ...]
    cells: Mapping[str, Sequence[GpuCell]]


class Fleet:
    """Cached overviews of the whole pool, computed for one reader at a time.

    Args:
        settle: Writes pending measurements.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        reader: UseReader,
        settle: Callable[[], Awaitable[None]],
        past: PastJobs,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._reader = reader
        self._past = past
        self._hourly = HourlyUse(reader)
        self._settle = settle
        self._busy = asyncio.Lock()
        self._day: tuple[float, DayOfUse] | None = None
        self._grid: tuple[float, HourGrid] | None = None
        self._week: tuple[float, WeekOfUse] | None = None

    async def make_ready(self) -> None:
        """Compute the hours of a week in advance, so that the first reader waits only for the
        newest.

        Errors: those of the store.
        """
        async with self._busy:
            await self._hourly.hours(WEEK_HOURS, self._observed.settings.clock.now())

    async def day(self) -> DayOfUse:
        """Return where the GPU-hours of the last day went, without names."""
        async with self._busy:
            now = self._observed.settings.clock.now()
            if self._day is None or not _is_fresh(self._day[0], now):
                self._day = now, await self._make_day(now)
            return self._day[1]

    async def grid(self, caller: Caller | None) -> HourGrid:
        """Return the last hour; holders of GPUs are named only to callers who may see them.

        Args:
            caller: None names no user.
        """
        async with self._busy:
            now = self._observed.settings.clock.now()
            if self._grid is None or not _is_fresh(self._grid[0], now):
                self._grid = now, await self._make_grid(now)
            found = self._grid[1]
        if caller is not None and rights.rules_all(caller):
            return found
        configuration = self._observed.now.configuration
        return replace(
            found,
            cells={
                gpu: [_seen_by(caller, cell, configuration) for cell in row]
                for gpu, row in found.cells.items()
            },
        )

    async def week(self, caller: Caller) -> WeekOfUse:
        """Return the use of each project. Errors: Forbidden for non-administrators."""
        rights.require_admin(caller, "see what all projects use")
        async with self._busy:
            now = self._observed.settings.clock.now()
            if self._week is None or not _is_fresh(self._week[0], now, WEEK_KEPT_S):
                self._week = now, await self._make_week(caller, now)
            return self._week[1]

    def preemptions(self, caller: Caller, at_most: int) -> tuple[Sequence[PreemptionCost], int]:
        """Return the newest preemptions of 7 days, and their total number. Errors: Forbidden."""
        now = self._observed.settings.clock.now()
        return preemption_ledger.newest(self._ledger, caller, now, at_most)

    async def _make_week(self, caller: Caller, now: float) -> WeekOfUse:
        hours = await self._hourly.hours(WEEK_HOURS, now)
        begin = hours[0][0]
        removed = await asyncio.to_thread(lambda: list(self._past.read(begin)))
        configuration = self._observed.now.configuration
        figures = figures_of(self._ledger, caller, begin, now, configuration, removed)
        names = {name for _, of in hours for name in of}
        rows = {
            name: row_of(
                together(of[name] for _, of in hours if name in of),
                name,
                figures.of(UseBy.PROJECT, name),
            )
            for name in sorted(names)
        }
        total = row_of(together(one for _, of in hours for one in of.values()))
        return WeekOfUse(rows, total, self._hours_of(hours))

    def _hours_of(self, hours: Sequence[tuple[float, ByProject]]) -> tuple[HourOfUse, ...]:
        zone = ZoneInfo(self._observed.now.configuration.gpu_hours.time_zone)
        return tuple(
            HourOfUse(datetime.fromtimestamp(at, zone), row_of(together(of.values())))
            for at, of in hours
        )

    async def _make_day(self, now: float) -> DayOfUse:
        await self._settle()
        hours = await self._hourly.hours(HOURS, now)
        zone = ZoneInfo(self._observed.now.configuration.gpu_hours.time_zone)
        total = row_of(together(one for _, of in hours for one in of.values()))
        begun = self._hourly.begun
        words = None
        if hours[0][0] < begun < now:
            words = f"{datetime.fromtimestamp(begun, zone):%Y-%m-%d %H:%M}"
        return DayOfUse(
            text=sentence(total, "The last 24 hours"),
            notes=tuple(notes(total, begun=words)),
            hours=self._hours_of(hours),
            total=total,
        )

    async def _make_grid(self, now: float) -> HourGrid:
        last = now // STEP_S * STEP_S
        begins = tuple(last - STEP_S * number for number in range(STEPS - 1, -1, -1))
        await self._settle()
        recorded = await self._reader.read(begins[0], last + STEP_S, step_s=STEP_S)
        found = await asyncio.to_thread(cells, recorded.history, recorded.activity, begins, STEP_S)
        return HourGrid(begins, found)


def _is_fresh(made: float, now: float, kept_s: float = KEPT_S) -> bool:
    return 0 <= now - made < kept_s


def _seen_by(caller: Caller | None, cell: GpuCell, configuration: Configuration) -> GpuCell:
    who = cell.occupant
    if who is None or not who.user:
        return cell
    if caller is not None and rights.may_see_use(caller, who.user, who.project, configuration):
        return cell
    return replace(cell, occupant=GpuHolder(who.occupation))
