"""Where agents are answered: notices, logs, progress, and folders on their way.

Agents ask, nobody calls them: a pod needs no open port. A question for a notice is held open, so
that a notice arrives within milliseconds. What it keeps in memory is only who asks just now.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.errors import Forbidden
from benchpool_scheduler.runtime import Notice, WorkerEvent, WorkerId, WorkerProgress
from benchpool_scheduler.runtime.kubernetes.log_spool import LogSpool
from benchpool_scheduler.worker.folders import Folders

HEARD_S = 5.0
"""An agent that is between two questions for less than this still listens."""
MOST_WAIT_S = 55.0


@dataclass(slots=True)
class _AgentSession:
    """The questions of one worker's agent."""

    notice: tuple[Notice, float] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    asking: int = 0
    heard: float = -1e9


@dataclass(frozen=True, slots=True)
class PendingNotice:
    """A notice with the seconds that are left of its grace."""

    kind: str
    grace_s: float
    for_: str
    text: str


class AgentApi:
    """What agents talk to; every verb is for a worker that has proved who it is.

    Args:
        folders: Of the scheduler's state folder. ``log_bytes``: bound of one log there.
        tell: Takes events. ``ended``: tells whether a worker is over.
    """

    def __init__(
        self,
        folders: Folders,
        tell: Callable[[WorkerEvent], None],
        *,
        ended: Callable[[WorkerId], bool],
        log_bytes: int,
    ) -> None:
        self._folders = folders
        self._tell = tell
        self._ended = ended
        self._logs = LogSpool(folders, log_bytes)
        self._sessions: dict[WorkerId, _AgentSession] = {}
        self._grown: dict[WorkerId, asyncio.Event] = {}

    # ------------------------------------------------------------------ for the runtime

    def notify(self, worker: WorkerId, notice: Notice) -> None:
        """Give a notice to the worker's agent as soon as it asks."""
        session = self._session(worker)
        session.notice = (notice, time.monotonic() + notice.grace_s)
        session.news.set()

    def listens(self, worker: WorkerId) -> bool:
        """Tell whether the worker's agent hears notices just now."""
        session = self._sessions.get(worker)
        return session is not None and (
            session.asking > 0 or time.monotonic() - session.heard < HEARD_S
        )

    def leave(self, worker: WorkerId) -> None:
        """Forget a worker that has ended."""
        self._sessions.pop(worker, None)
        self.grew(worker)

    async def wait_for_growth(self, worker: WorkerId, timeout_s: float) -> None:
        """Wait until the worker's log grows or ends, at most ``timeout_s``."""
        grown = self._grown.setdefault(worker, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(grown.wait(), timeout_s)

    # ------------------------------------------------------------------ for agents

    def admit(self, worker: WorkerId) -> None:
        """Let a worker that is not over go on. Errors: Forbidden.

        What is left of one that is over, or who has its token, must not write over what later
        attempts of its job have saved, nor fill the disk.
        """
        if self._ended(worker):
            raise Forbidden(
                f"Worker {worker.worker} of attempt {worker.attempt} of job {worker.job[:8]} has "
                "ended: its token is good for nothing any more.",
                code="worker-ended",
            )

    async def notice(self, worker: WorkerId, known: str, wait_s: float) -> PendingNotice | None:
        """Return what the worker shall know and does not, waiting for it; None for nothing."""
        session = self._session(worker)
        session.asking += 1
        deadline = time.monotonic() + min(wait_s, MOST_WAIT_S)
        try:
            while True:
                if session.notice is not None and session.notice[0].kind != known:
                    notice, until = session.notice
                    left = max(0.0, until - time.monotonic())
                    return PendingNotice(notice.kind, left, notice.for_, notice.text)
                session.news.clear()
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                try:
                    await asyncio.wait_for(session.news.wait(), left)
                except TimeoutError:
                    return None
        finally:
            session.asking -= 1
            session.heard = time.monotonic()

    def append(self, worker: WorkerId, offset: int, data: bytes) -> int:
        """Take a piece of the log; return where the next one begins. Blocks for the disk."""
        return self._logs.append(worker, offset, data)

    def grew(self, worker: WorkerId) -> None:
        """Wake who waits for the worker's log."""
        grown = self._grown.pop(worker, None)
        if grown is not None:
            grown.set()

    def progress(
        self,
        worker: WorkerId,
        fraction: float | None,
        text: str | None,
        metrics: Mapping[str, float],
        checkpoint_at: float | None,
        checkpoint_step: int | None = None,
    ) -> None:
        """Take what a worker says of itself."""
        saved = (checkpoint_at, checkpoint_step)
        self._tell(WorkerProgress(worker, time.time(), fraction, text, dict(metrics), *saved))

    def carried(self, job: str, what: str, index: int) -> Path:
        """Return where a packed folder of a worker lies, or would lie."""
        return self._folders.job(job) / "carried" / f"{what}-{index}.tar"

    def _session(self, worker: WorkerId) -> _AgentSession:
        return self._sessions.setdefault(worker, _AgentSession())
