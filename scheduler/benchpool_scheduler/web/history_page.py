"""The page of ended jobs over a range of days: the reader's own, or all that are visible."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from benchpool_scheduler.accounting.ranges import FIRST_YEAR, LAST_YEAR
from benchpool_scheduler.contract import Job
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import count
from benchpool_scheduler.web.history_view import (
    ENDS,
    DayBar,
    EndedJob,
    as_csv,
    axis,
    bars,
    ended,
    sentence,
    shares,
)
from benchpool_scheduler.web.job_rows import attempts_of
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.words import ENDED_STATES

CHOICES = (7, 28, 90)
"""Ranges in days that have a link."""

LONGEST_DAYS = 3660
MOST = 10_000
"""Maximum number of jobs that are read, the newest first: the limit of a list of jobs."""

SLICE = 500
"""Number of jobs that are read before the loop runs other work."""

WIDTH, HEIGHT, LEFT, FOOT = 760, 240, 72, 32
"""Size of the chart, and margins of its axes, in its own units."""


@dataclass(frozen=True, slots=True)
class DaysShown:
    """The days, in ``zone``, and whose jobs."""

    first: date
    last: date
    all: bool
    zone: ZoneInfo

    @property
    def query(self) -> str:
        """Return the query string of this page."""
        return f"from={self.first}&to={self.last}" + ("&whose=all" if self.all else "")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a bar in the chart; ``title`` describes it."""

    x: float
    y: float
    width: float
    height: float
    style: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the axis with its number."""

    y: float
    text: str


class HistoryHandler(PageHandler):
    """``GET <prefix>history?from&to&whose`` as a page, ``history.csv`` as a table."""

    async def get(self, kind: str) -> None:
        """Show the page or table. Errors: InvalidInput for parameters of the address."""
        caller = await self.reader()
        asked = self._asked()
        seen = self.site.pool.jobs.select(caller, all=asked.all, limit=MOST)
        chosen = [job for job in seen if _in(job, asked)]
        found: list[EndedJob] = []
        for at in range(0, len(chosen), SLICE):
            part = chosen[at : at + SLICE]
            attempts = attempts_of(self.site.pool, caller, part)
            found += [ended(job, attempts.get(job.id, ())) for job in part]
            await asyncio.sleep(0)
        if kind:
            name = f"jobs-{asked.first}-{asked.last}.csv"
            self.set_header("Content-Type", "text/csv; charset=utf-8")
            self.set_header("Content-Disposition", f'attachment; filename="{name}"')
            await self.finish(as_csv(found))
            return
        columns = bars(found, asked.first, asked.last, asked.zone)
        lines = axis(max(bar.total for bar in columns))
        others = {job.job.user for job in found} - {caller.name}
        await self.show(
            "history.html",
            self.facts(back="history"),
            asked=asked,
            choices=[(days, self._days(days, all=asked.all)) for days in CHOICES],
            whose=[
                ("mine", self._whose(asked, all=False)),
                ("all that I may see", self._whose(asked, all=True)),
            ],
            sentence=sentence(found, "the jobs that you may see" if asked.all else "your jobs"),
            cut=f"Only the newest {count(MOST, 'job')} are counted." if len(seen) == MOST else "",
            ends=[state.value for state in ENDS],
            columns=columns,
            blocks=blocks(columns, lines[-1]),
            lines=[Line(_height(at, lines[-1]), f"{at:g}") for at in lines],
            size=(WIDTH, HEIGHT, LEFT, FOOT),
            projects=shares(found, lambda job: job.project),
            users=shares(found, lambda job: job.user) if others else [],
            kept=self.site.pool.views.kept(),
        )

    def _asked(self) -> DaysShown:
        today = self.site.today()
        last = self._date("to") or today
        first = self._date("from") or last - timedelta(days=CHOICES[1] - 1)
        if not 0 <= (last - first).days < LONGEST_DAYS:
            raise InvalidInput(
                f"{first} to {last} is not a valid range. Give a first day that is not after the "
                f"last, and at most {LONGEST_DAYS} days.",
                field="from",
            )
        return DaysShown(first, last, self.get_query_argument("whose", "") == "all", self.site.zone)

    def _date(self, name: str) -> date | None:
        text = self.get_query_argument(name, "").strip()
        try:
            day = date.fromisoformat(text) if text else None
        except ValueError:
            day = date.min
        if day is not None and not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise InvalidInput(
                f"{name} is {text!r}. Give a day such as 2026-11-23, in a year from {FIRST_YEAR} "
                f"to {LAST_YEAR}.",
                field=name,
            )
        return day

    def _days(self, days: int, *, all: bool) -> DaysShown:
        today = self.site.today()
        return DaysShown(today - timedelta(days=days - 1), today, all, self.site.zone)

    def _whose(self, asked: DaysShown, *, all: bool) -> DaysShown:
        return DaysShown(asked.first, asked.last, all, asked.zone)


def _in(job: Job, asked: DaysShown) -> bool:
    if job.state not in ENDED_STATES or job.ended is None:
        return False
    return asked.first <= job.ended.astimezone(asked.zone).date() <= asked.last


def _height(value: float, most: float) -> float:
    """Return the vertical position of a value in the chart, whose top is 0."""
    return round((HEIGHT - FOOT) - (HEIGHT - FOOT - 8) * value / most, 2)


def blocks(columns: list[DayBar], most: float) -> list[Block]:
    """Return the visible parts of all bars.

    Args:
        most: End of the axis, in GPU-hours.
    """
    each = (WIDTH - LEFT) / len(columns)
    found = []
    for number, bar in enumerate(columns):
        below = 0.0
        for state in ENDS:
            part = bar.hours[state]
            if part > 0:
                top, foot = _height(below + part, most), _height(below, most)
                title = f"{bar.title}: {part:.2f} GPU-hours of jobs that {_ended(state.value)}"
                x, width = round(LEFT + number * each, 2), round(max(1.0, each * 0.8), 2)
                found.append(Block(x, top, width, round(foot - top, 2), state.value, title))
            below += part
    return found


def _ended(state: str) -> str:
    return "were cancelled" if state == "cancelled" else state
