"""What the local runtime keeps of a worker that has a living supervisor."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.runtime import Stranger, WorkerId
from benchpool_scheduler.worker.progress import ReportedProgress

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
    checkpoint_at: float | None = None
    checkpoint_seen: float | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    stranger: Stranger | None = None
