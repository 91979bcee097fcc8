"""State of a worker with a living supervisor, in the local runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.runtime import UnexpectedWorker, WorkerId, WorkerMetrics, WorkerProgress
from benchpool_scheduler.worker import tracker_runs
from benchpool_scheduler.worker.metric_lines import MetricReader
from benchpool_scheduler.worker.progress import (
    ReportedProgress,
    SavedCheckpoint,
    read_progress,
    signature,
)

from .supervisors import SupervisorHandle


@dataclass(slots=True)
class RunningWorker:
    """A worker with a living supervisor."""

    worker: WorkerId
    folder: Path
    handle: SupervisorHandle
    ready: int | None
    expected: bool
    introduced: bool = False
    let_go: bool = False
    start_reported: bool = False
    seen: object = None
    progress: ReportedProgress = field(default_factory=ReportedProgress)
    runs: tuple[tracker_runs.ReportedRun, ...] = ()
    checkpoint: SavedCheckpoint | None = None
    checkpoint_seen: SavedCheckpoint | None = None
    metrics: MetricReader | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    description: UnexpectedWorker | None = None

    def look(
        self, exchange: Path, saved: SavedCheckpoint | None, *, at: float, over: bool
    ) -> Iterator[WorkerProgress | WorkerMetrics]:
        """Yield new progress, new values and a new complete checkpoint.

        Args:
            at: The present time, in epoch seconds. ``over``: the worker has ended, so everything is
                reported. A checkpoint that still changes is incomplete: it counts when it is
                unchanged at the next look, or when the worker has ended.

        Raises OSError if the machine cannot read the files now.
        """
        if self.metrics is None:
            self.metrics = MetricReader(exchange, speaks=self.worker.worker == 0)
        while values := self.metrics.read():
            yield WorkerMetrics(self.worker, at, tuple(values))
            if not over:
                break
        if self._is_news(exchange, saved, over=over):
            yield self._reported(at)

    def _is_news(self, exchange: Path, saved: SavedCheckpoint | None, *, over: bool) -> bool:
        files = (signature(exchange), tracker_runs.signature(exchange))
        written = None if files == (None, None) else files
        settled = saved if over or saved == self.checkpoint_seen else self.checkpoint
        self.checkpoint_seen = saved
        if written == self.seen and settled == self.checkpoint:
            return False
        if written != self.seen:
            self.seen = written
            self.progress = read_progress(exchange) or self.progress
            self.runs = tracker_runs.read_runs(exchange) or self.runs
        self.checkpoint = settled
        return True

    def _reported(self, at: float) -> WorkerProgress:
        """Return the last progress of the worker, and its last checkpoint."""
        progress, saved = self.progress, self.checkpoint
        saved_at, step = (None, None) if saved is None else (saved.at, saved.step)
        values = (progress.fraction, progress.text, progress.metrics)
        return WorkerProgress(self.worker, at, *values, saved_at, step, self.runs)
