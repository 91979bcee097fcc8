"""Reports of the local runtime's workers: progress, values and checkpoints, read from files."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from benchpool_scheduler.runtime import WorkerEvent, WorkerId, WorkerMetrics, WorkerProgress
from benchpool_scheduler.worker import tracker_runs
from benchpool_scheduler.worker.metric_lines import MetricReader
from benchpool_scheduler.worker.progress import (
    ReportedProgress,
    SavedCheckpoint,
    last_checkpoint,
    read_progress,
    signature,
)

if TYPE_CHECKING:
    from pathlib import Path

    from benchpool_scheduler.worker.folders import Folders

    from .running_worker import RunningWorker

LOOK_S = 1.0
"""Interval between two looks at all workers, in seconds."""
PIECES = 40
"""Number of further pieces of values in one look, shared by the workers that are behind.

The limits of one writer need two pieces a second.
"""


class WorkerReports:
    """Reports of one worker since the last look."""

    def __init__(self, worker: WorkerId) -> None:
        self._worker = worker
        self._seen: object = None
        self._progress = ReportedProgress()
        self._runs: tuple[tracker_runs.ReportedRun, ...] = ()
        self._checkpoint: SavedCheckpoint | None = None
        self._checkpoint_seen: SavedCheckpoint | None = None
        self._metrics: MetricReader | None = None

    @property
    def behind(self) -> bool:
        """Whether the last piece of values was not the newest."""
        return self._metrics is not None and self._metrics.behind

    def look(
        self, exchange: Path, saved: SavedCheckpoint | None, *, at: float, over: bool
    ) -> Iterator[WorkerProgress | WorkerMetrics]:
        """Yield a piece of new values, new progress and a new complete checkpoint.

        Args:
            at: The present time, in epoch seconds. ``over``: the worker has ended. A checkpoint
                that still changes is incomplete: it counts when it is unchanged at the next look,
                or when the worker has ended.

        Raises OSError if the machine cannot read the files now.
        """
        yield from self.values(exchange, at=at)
        if self._is_news(exchange, saved, over=over):
            yield self._reported(at)

    def values(self, exchange: Path, *, at: float) -> Iterator[WorkerMetrics]:
        """Yield at most one piece of new values. Raises OSError as ``look``."""
        if self._metrics is None:
            self._metrics = MetricReader(exchange, speaks=self._worker.worker == 0)
        if values := self._metrics.read():
            yield WorkerMetrics(self._worker, at, tuple(values))

    def _is_news(self, exchange: Path, saved: SavedCheckpoint | None, *, over: bool) -> bool:
        files = (signature(exchange), tracker_runs.signature(exchange))
        written = None if files == (None, None) else files
        settled = saved if over or saved == self._checkpoint_seen else self._checkpoint
        self._checkpoint_seen = saved
        if written == self._seen and settled == self._checkpoint:
            return False
        if written != self._seen:
            self._seen = written
            self._progress = read_progress(exchange) or self._progress
            self._runs = tracker_runs.read_runs(exchange) or self._runs
        self._checkpoint = settled
        return True

    def _reported(self, at: float) -> WorkerProgress:
        """Return the last progress of the worker, and its last checkpoint."""
        progress, saved = self._progress, self._checkpoint
        saved_at, step = (None, None) if saved is None else (saved.at, saved.step)
        values = (progress.fraction, progress.text, progress.metrics)
        return WorkerProgress(self._worker, at, *values, saved_at, step, self._runs)


class ReportLooks:
    """Periodic looks at the reports of running workers.

    Args:
        running: The running workers. ``put``: receives the events.
        report_start: Reports the start of a worker whose command has started; raises OSError.
    """

    def __init__(
        self,
        running: Mapping[WorkerId, RunningWorker],
        folders: Folders,
        report_start: Callable[[RunningWorker], None],
        put: Callable[[WorkerEvent], None],
    ) -> None:
        self._running = running
        self._folders = folders
        self._report_start = report_start
        self._put = put

    async def run(self) -> None:
        """Look at all workers once a second, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()
            await self.catch_up()

    def look(self) -> None:
        """Report what is new, and of values at most one piece of each worker."""
        for run in list(self._running.values()):
            with contextlib.suppress(OSError):
                self._report_start(run)
                if run.expected and run.start_reported:
                    self._look(run.worker, run.reports)

    async def catch_up(self) -> None:
        """Read values that the look has left: in each round one piece of each worker."""
        left = PIECES
        while left > 0 and (behind := [it for it in self._running.values() if it.reports.behind]):
            left -= len(behind)
            for run in behind:
                await asyncio.sleep(0)
                if self._running.get(run.worker) is run:
                    with contextlib.suppress(OSError):
                        self._read(run.worker, run.reports)

    async def finish(self, worker: WorkerId, reports: WorkerReports) -> None:
        """Report everything that an ended worker has written."""
        with contextlib.suppress(OSError):
            self._look(worker, reports, over=True)
            while reports.behind:
                await asyncio.sleep(0)
                self._read(worker, reports)

    def _look(self, worker: WorkerId, reports: WorkerReports, *, over: bool = False) -> None:
        saved = last_checkpoint(self._folders.checkpoint(worker.job))
        exchange = self._folders.exchange(worker)
        for news in reports.look(exchange, saved, at=time.time(), over=over):
            self._put(news)

    def _read(self, worker: WorkerId, reports: WorkerReports) -> None:
        for news in reports.values(self._folders.exchange(worker), at=time.time()):
            self._put(news)
