"""Metric curves of jobs: active ones in memory, all in files until their job is removed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.curves.series import Lines, MetricReport, as_reports, taken
from benchpool_scheduler.curves.views import newest
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.store.curve_files import CurveFiles
from benchpool_scheduler.store.records import JobRecord

WRITE_S = 2.0
"""Longest delay before reported values are written, in seconds. A crash may lose as much."""
MOST_HELD = 300_000
"""Approximate limit of points in memory. Idle curves are read from their files again."""
MOST_UNWRITTEN = 1_000
"""Limit of unwritten reports of a job. Beyond it the whole kept curve is written instead."""
REWRITE_BYTES = 256 * 1024
"""Growth after which a file is rewritten, if it has also doubled since it was last rewritten."""


@dataclass(slots=True)
class _Kept:
    """The curves of a job, and the reports that are not in its file yet."""

    lines: Lines
    newest: dict[str, float]
    points: int
    unwritten: list[MetricReport] = field(default_factory=list)
    writing: bool = False


class JobCurves:
    """Metric curves by job.

    Args:
        report: Receives a problem with writing, or None when it is over.

    Attributes:
        changed: Publishes the jobs that have reported new values.
    """

    def __init__(self, folder: Path, report: Callable[[str, str | None], None]) -> None:
        self.changed: Topic[Collection[str]] = Topic()
        self._files = CurveFiles(folder)
        self._report = report
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._points = 0
        self._written: dict[str, int] = {}
        self._gone: set[str] = set()
        self._news = asyncio.Event()

    # ------------------------------------------------------------------ reading

    def newest(self, job: str) -> dict[str, float] | None:
        """Return the newest values of a reporting job; the same object while they do not change."""
        kept = self._kept.get(job)
        return None if kept is None else kept.newest

    async def lines(self, job: str) -> Lines:
        """Return the curves of a job. Errors: OSError."""
        kept = self._kept.get(job)
        if kept is not None:
            return kept.lines
        return await asyncio.to_thread(self._files.read, job)

    # ------------------------------------------------------------------ growing

    def take(self, job: str, report: MetricReport) -> None:
        """Add a job's report."""
        try:
            kept = self._kept.get(job) or _Kept(self._files.read(job), {}, 0)
        except OSError as failed:
            self._report("curves", f"Curves of a job cannot be read ({failed.strerror}).")
            return
        lines, new = taken(kept.lines, report)
        self._kept[job] = kept
        self._kept.move_to_end(job)
        points = sum(map(len, lines.values()))
        self._points += points - kept.points
        kept.lines, kept.points = lines, points
        if new.values:
            kept.unwritten.append(new)
            if len(kept.unwritten) > MOST_UNWRITTEN:
                kept.unwritten = as_reports(lines)
            self._news.set()
        if kept.newest != (values := newest(lines)):
            kept.newest = values
            self.changed.publish([job])
        self._rest()

    def dropped(self, job: JobRecord) -> None:
        """Forget a removed job."""
        kept = self._kept.pop(job.id, None)
        self._points -= 0 if kept is None else kept.points
        self._written.pop(job.id, None)
        self._gone.add(job.id)
        self._news.set()

    def _rest(self) -> None:
        """Drop from memory the curves that have been quiet longest and are in their files."""
        for job, kept in list(self._kept.items())[:-1]:
            if self._points <= MOST_HELD:
                return
            if not kept.unwritten and not kept.writing:
                del self._kept[job]
                self._points -= kept.points

    # ------------------------------------------------------------------ writing

    async def run(self) -> None:
        """Write new values and remove the files of removed jobs, until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(WRITE_S)
            await self.write()

    async def write(self) -> None:
        """Write new values now. A write that fails is retried the next time."""
        self._news.clear()
        try:
            for job in list(self._gone):
                await asyncio.to_thread(self._files.remove, job)
                self._gone.discard(job)
            for job, kept in list(self._kept.items()):
                if kept.unwritten:
                    await self._write_one(job, kept)
        except OSError as failed:
            self._news.set()
            self._report(
                "curves", f"Curves of jobs cannot be written ({failed.strerror}); free the disk."
            )
        else:
            self._report("curves", None)

    async def _write_one(self, job: str, kept: _Kept) -> None:
        pieces, kept.unwritten = kept.unwritten, []
        kept.writing, whole = True, kept.lines
        try:
            size = await asyncio.to_thread(self._files.append, job, pieces)
            first = self._written.setdefault(job, size)
            if size > max(2 * first, first + REWRITE_BYTES):
                self._written[job] = await asyncio.to_thread(self._files.rewrite, job, whole)
        except OSError:
            kept.unwritten = pieces + kept.unwritten
            raise
        finally:
            kept.writing = False
