"""Metric curves of jobs: active ones in memory, all in files until their job is removed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.curves.series import Lines, MetricReport, taken
from benchpool_scheduler.curves.views import NewestMetrics, newest
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.store.curve_files import CurveFiles
from benchpool_scheduler.store.records import JobRecord

WRITE_S = 2.0
"""Longest delay before reported values are written, in seconds. A crash may lose as much."""
PUBLISH_S = 0.1
"""Interval whose reports are published together, in seconds."""
APART_S = 0.001
"""Least difference of the times of two reports of a job, in seconds."""
MOST_HELD = 300_000
"""Approximate limit of points in memory. Idle curves are read from their files again."""
MOST_UNWRITTEN = 1_000
"""Number of unwritten values of a job beyond which the whole curve is written, if it is smaller."""
LEAST_BYTES, MOST_BYTES = 256 * 1024, 2_000_000
"""Size below which a file is not rewritten, and size that it exceeds only if its curves do."""


@dataclass(slots=True)
class _Kept:
    """The curves of a job, and the reports that are not in its file yet.

    ``stale``: the file must be rewritten.
    """

    lines: Lines
    newest: NewestMetrics | None = None
    points: int = 0
    unwritten: list[MetricReport] = field(default_factory=list)
    values: int = 0
    stale: bool = False
    writing: bool = False

    @property
    def waits(self) -> bool:
        """Whether something is to be written."""
        return self.stale or bool(self.unwritten)

    def put(self, new: MetricReport) -> None:
        """Add a report that is to be written."""
        if self.stale:
            return
        self.unwritten.append(new)
        self.values += len(new.values)
        if self.values > max(MOST_UNWRITTEN, self.points):
            self.rewrite()

    def rewrite(self) -> None:
        """Let the next write write the whole curves."""
        self.unwritten, self.values, self.stale = [], 0, True


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
        self._folded: dict[str, int] = {}
        self._grown: set[str] = set()
        self._ended: set[str] = set()
        self._gone: set[str] = set()
        self._news = asyncio.Event()
        self._reporting: set[str] = set()
        self._soon: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------ reading

    def newest(self, job: str) -> NewestMetrics | None:
        """Return the newest values of a reporting job; another object after each report."""
        kept = self._kept.get(job)
        return None if kept is None else kept.newest

    async def lines(self, job: str) -> Lines:
        """Return the curves of a job. Errors: OSError."""
        kept = self._kept.get(job)
        if kept is not None:
            return kept.lines
        return await asyncio.to_thread(self._files.read, job)

    # ------------------------------------------------------------------ growing

    def take(self, job: str, report: MetricReport, at: float) -> None:
        """Add a job's report that arrived at ``at``, in epoch seconds."""
        try:
            kept = self._kept.get(job) or self._load(job)
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
            kept.put(new)
            self._news.set()
        before, values = kept.newest, newest(lines)
        if new.values or before is None or before.values != values:
            later = at if before is None else max(at, before.at + APART_S)
            kept.newest = NewestMetrics(values, later)
            self._publish_soon(job)
        self._rest()

    def ended(self, jobs: Iterable[str]) -> None:
        """Fold the files of jobs that have ended."""
        for job in jobs:
            kept = self._kept.get(job)
            if job in self._grown or (kept is not None and kept.waits):
                self._ended.add(job)
                self._news.set()

    def dropped(self, job: JobRecord) -> None:
        """Forget a removed job."""
        kept = self._kept.pop(job.id, None)
        self._points -= 0 if kept is None else kept.points
        self._folded.pop(job.id, None)
        self._grown.discard(job.id)
        self._ended.discard(job.id)
        self._gone.add(job.id)
        self._news.set()

    def _load(self, job: str) -> _Kept:
        lines = self._files.read(job)
        if lines:
            self._grown.add(job)
        return _Kept(lines)

    def _rest(self) -> None:
        """Drop from memory the curves that have been quiet longest and are in their files."""
        for job, kept in list(self._kept.items())[:-1]:
            if self._points <= MOST_HELD:
                return
            if not kept.waits and not kept.writing:
                del self._kept[job]
                self._points -= kept.points

    def _publish_soon(self, job: str) -> None:
        self._reporting.add(job)
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(PUBLISH_S, self._publish)

    def _publish(self) -> None:
        self._soon = None
        jobs, self._reporting = self._reporting, set()
        self.changed.publish(jobs)

    # ------------------------------------------------------------------ writing

    async def run(self) -> None:
        """Write new values and remove the files of removed jobs, until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(WRITE_S)
            await self.write()

    async def close(self) -> None:
        """Write new values and publish no more."""
        if self._soon is not None:
            self._soon.cancel()
        await self.write()

    async def write(self) -> None:
        """Write new values now. A write that fails is retried the next time."""
        self._news.clear()
        try:
            for job in list(self._gone):
                await asyncio.to_thread(self._files.remove, job)
                self._gone.discard(job)
            for job in list(self._ended):
                await self._fold(job)
            for job, kept in list(self._kept.items()):
                if kept.waits:
                    await self._write_one(job, kept)
        except OSError as failed:
            self._news.set()
            self._report(
                "curves", f"Curves of jobs cannot be written ({failed.strerror}); free the disk."
            )
        else:
            self._report("curves", None)

    async def _fold(self, job: str) -> None:
        kept = self._kept.get(job)
        if kept is not None:
            kept.rewrite()
        else:
            await asyncio.to_thread(self._files.fold, job)
            self._grown.discard(job)
        self._ended.discard(job)

    async def _write_one(self, job: str, kept: _Kept) -> None:
        pieces, values, whole, lines = kept.unwritten, kept.values, kept.stale, kept.lines
        kept.unwritten, kept.values, kept.stale, kept.writing = [], 0, False, True
        try:
            most = most_bytes(self._folded.get(job, 0))
            if whole or not await asyncio.to_thread(self._files.append, job, pieces, most):
                self._folded[job] = await asyncio.to_thread(self._files.rewrite, job, lines)
                self._grown.discard(job)
            else:
                self._grown.add(job)
        except OSError:
            kept.unwritten, kept.values = pieces + kept.unwritten, values + kept.values
            kept.stale = kept.stale or whole
            raise
        finally:
            kept.writing = False


def most_bytes(folded: int) -> int:
    """Return the size above which a file is rewritten, for its size after the last rewrite.

    >>> most_bytes(0), most_bytes(60_000), most_bytes(1_300_000), most_bytes(6_400_000)
    (262144, 262144, 2000000, 7200000)
    """
    return max(min(max(2 * folded, LEAST_BYTES), MOST_BYTES), folded + folded // 8)
