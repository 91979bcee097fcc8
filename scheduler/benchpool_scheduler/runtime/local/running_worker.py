"""State of a worker with a living supervisor, in the local runtime."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.runtime import UnexpectedWorker, WorkerId

from .supervisors import SupervisorHandle
from .worker_reports import WorkerReports


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
    reports: WorkerReports = field(init=False)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    description: UnexpectedWorker | None = None

    def __post_init__(self) -> None:
        self.reports = WorkerReports(self.worker)
