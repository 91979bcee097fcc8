"""What the local runtime keeps of a worker that has a living supervisor."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.runtime import Stranger, WorkerId, WorkerProgress
from benchpool_scheduler.worker.progress import (
    ReportedProgress,
    SavedCheckpoint,
    read_progress,
    signature,
)

from .supervisors import SupervisorHandle


@dataclass(slots=True)
class RunningWorker:
    """A worker that has a living supervisor."""

    worker: WorkerId
    folder: Path
    handle: SupervisorHandle
    ready: int | None
    expected: bool
    introduced: bool = False
    let_go: bool = False
    told_started: bool = False
    seen: tuple[int, int, int] | None = None
    progress: ReportedProgress = field(default_factory=ReportedProgress)
    checkpoint: SavedCheckpoint | None = None
    checkpoint_seen: SavedCheckpoint | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    stranger: Stranger | None = None

    def look(self, exchange: Path, saved: SavedCheckpoint | None, *, over: bool) -> bool:
        """Take its own words, and a checkpoint that is written whole; return whether there is news.

        A checkpoint that still changes is not whole: it counts when it is the same at the next
        look, or when it is ``over`` and nobody is left who could write.
        """
        written = signature(exchange)
        settled = saved if over or saved == self.checkpoint_seen else self.checkpoint
        self.checkpoint_seen = saved
        if written == self.seen and settled == self.checkpoint:
            return False
        if written != self.seen:
            self.seen = written
            self.progress = read_progress(exchange) or self.progress
        self.checkpoint = settled
        return True

    def reported(self, at: float) -> WorkerProgress:
        """Return what it said last, and when the job last saved."""
        said, saved = self.progress, self.checkpoint
        checkpoint = (None, None) if saved is None else (saved.at, saved.step)
        return WorkerProgress(self.worker, at, said.fraction, said.text, said.metrics, *checkpoint)
