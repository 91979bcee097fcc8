"""The page of one job, the target of every link to a job."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from benchpool_scheduler.contract import JobDetail, MetricsQuery
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.phrases import log_end, no_longer_kept
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.curve_view import LabelledCurves, pictures
from benchpool_scheduler.web.flash import flash
from benchpool_scheduler.web.job_files import kinds_of
from benchpool_scheduler.web.job_rows import Reader
from benchpool_scheduler.web.job_view import job_view
from benchpool_scheduler.web.log_lines import LogLine, around
from benchpool_scheduler.web.log_text import tail
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.runs_page import POINTS, SIZE
from benchpool_scheduler.web.words import ENDED_STATES, optional_moment

TAIL_BYTES = 64 * 1024
MOST_ATTEMPTS = 10
MOST_WORKERS = 64


@dataclass(frozen=True, slots=True)
class LogChoice:
    """Link to the log of one worker of one attempt."""

    attempt: int
    worker: int
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class LogView:
    """The end of one log; ``next`` is the byte from which the page follows it.

    ``several``: there are logs of other workers. ``removed``: why the log was removed.
    ``complete``: text after the log of an ended attempt. ``lines``: its numbered lines, if
    requested.
    """

    attempt: int
    worker: int
    text: str
    cut: bool
    ended: bool
    next: int
    choices: tuple[LogChoice, ...]
    several: bool
    removed: str
    complete: str
    lines: tuple[LogLine, ...] = ()


class JobHandler(PageHandler):
    """``GET <prefix>jobs/<id>?attempt&worker&line``: ``line`` is the log line to show, 0 for its
    end.
    """

    async def get(self, job: str) -> None:
        """Show the page; the ID may be a prefix, as in the command line."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        detail = pool.jobs.detail(caller, job)
        progress = detail.job.progress
        reader = Reader(caller.name, caller.admin)
        curves = await pool.logs.metrics(caller, detail.job.id, MetricsQuery(points=POINTS))
        await self.show(
            "job.html",
            self.facts(back="job"),
            flash=flash(self, caller),
            job=job_view(
                detail,
                pool.views.status(caller).gpus,
                reader,
                now,
            ),
            would_start_with=pool.jobs.why(caller, detail.job.id).would_start_with,
            progress_at=None if progress is None else optional_moment(progress.updated, now),
            log=await self._tail(caller, detail),
            usage=detail.usage,
            pictures=await asyncio.to_thread(pictures, [LabelledCurves(job, curves.curves)]),
            size=SIZE,
            files=kinds_of(await pool.files.sizes(caller, detail.job.id)),
        )

    async def _tail(self, caller: Caller, detail: JobDetail) -> LogView | None:
        newest = max((attempt.attempt for attempt in detail.attempts), default=0)
        attempt = self._number("attempt", newest)
        worker = self._number("worker", 0)
        if newest == 0:
            return None
        try:
            chunk = await self.site.pool.logs.read(
                caller,
                detail.job.id,
                attempt=attempt,
                worker=worker,
                offset=-TAIL_BYTES,
                limit=TAIL_BYTES,
            )
        except NotFound:
            if self.get_query_argument("attempt", "") or self.get_query_argument("worker", ""):
                raise
            return None
        return LogView(
            attempt=attempt,
            worker=worker,
            text=tail(chunk.data, cut=chunk.offset > 0),
            cut=chunk.offset > 0,
            ended=chunk.ended,
            next=chunk.next_offset,
            choices=_choices(detail, attempt, worker),
            several=_workers(detail, attempt) > 1,
            complete=log_end(
                attempt,
                newest,
                over=detail.job.state in ENDED_STATES,
                empty=not chunk.data and not chunk.offset,
            ),
            lines=await self._lines(caller, detail.job.id, attempt, worker),
            removed="" if chunk.data else no_longer_kept(detail.kept, "logs", self.site.now()),
        )

    async def _lines(
        self, caller: Caller, job: str, attempt: int, worker: int
    ) -> tuple[LogLine, ...]:
        if not self.get_query_argument("line", ""):
            return ()

        async def read(offset: int) -> tuple[int, bytes]:
            chunk = await self.site.pool.logs.read(
                caller, job, attempt=attempt, worker=worker, offset=offset, limit=TAIL_BYTES
            )
            return chunk.next_offset, chunk.data

        return await around(read, self._number("line", 0))

    def _number(self, name: str, default: int) -> int:
        text = self.get_query_argument(name, "")
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 6:
            raise NotFound(f"There is no {name} with that number. Choose one on the job's page.")
        return int(text)


def _workers(detail: JobDetail, attempt: int) -> int:
    """Return the number of workers of an attempt, including workers that left."""
    return next((len(one.nodes) for one in detail.attempts if one.attempt == attempt), 1)


def _choices(detail: JobDetail, attempt: int, worker: int) -> tuple[LogChoice, ...]:
    numbers = [one.attempt for one in detail.attempts][-MOST_ATTEMPTS:]
    attempts = [LogChoice(one, 0, f"attempt {one}", one == attempt) for one in numbers]
    several = _workers(detail, attempt)
    if several == 1:
        return tuple(attempts)
    workers = [
        LogChoice(attempt, one, f"worker {one}", one == worker)
        for one in range(min(several, MOST_WORKERS))
    ]
    return (*(attempts if len(attempts) > 1 else ()), *workers)
