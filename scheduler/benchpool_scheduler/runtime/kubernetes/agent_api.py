"""Server side of the agents' requests: notices, logs, progress, and packed folders.

Agents send all requests, so a pod needs no open port. A request for a notice is held open, so that
a notice arrives within milliseconds. Only the requests in progress are kept in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.contract.stacks import WorkerStacks
from benchpool_scheduler.errors import Forbidden
from benchpool_scheduler.runtime import (
    Notice,
    ReportedRun,
    ReportedValue,
    WorkerEvent,
    WorkerId,
    WorkerMetrics,
    WorkerProgress,
)
from benchpool_scheduler.runtime.kubernetes.agent_shells import (
    AgentShell,
    AgentShells,
    PendingShell,
    gone,
)
from benchpool_scheduler.runtime.kubernetes.log_spool import LogSpool
from benchpool_scheduler.worker.folders import Folders

POLL_GAP_S = 5.0
"""Longest gap between two polls of an agent that counts as listening, in seconds."""
MOST_WAIT_S = 55.0
LOOK_S = 20.0
"""Timeout for an agent that collects the stacks of its worker, in seconds."""


@dataclass(slots=True)
class _AgentSession:
    """The polls of one worker's agent.

    Attributes:
        look: Pending request for its stacks. ``look_number``: number of this request, once the
            agent has received it; the agent's count continues after a restart of the scheduler.
        too_old: The agent is of an earlier version, which opens no shells.
    """

    notice: tuple[Notice, float] | None = None
    look_number: int | None = None
    look: asyncio.Future[WorkerStacks] | None = None
    shells: AgentShells = field(default_factory=AgentShells)
    too_old: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)
    asking: int = 0
    last_poll: float = -1e9

    def wants_look(self, looked: int) -> bool:
        """Return whether stacks are requested that an agent with this count has not been sent."""
        if self.look is None or self.look.done():
            return False
        return self.look_number is None or looked < self.look_number


@dataclass(frozen=True, slots=True)
class PendingNotice:
    """A notice with the rest of its grace period, in seconds."""

    kind: str
    grace_s: float
    for_: str
    text: str


@dataclass(frozen=True, slots=True)
class PendingLook:
    """A request for the worker's stacks; ``number`` grows with each request."""

    number: int


class AgentApi:
    """Requests of agents; callers authenticate the worker first.

    Args:
        folders: Folders of the scheduler's state. ``log_bytes``: size limit of one log there.
        publish: Receives events. ``ended``: returns whether a worker has ended.
    """

    def __init__(
        self,
        folders: Folders,
        publish: Callable[[WorkerEvent], None],
        *,
        ended: Callable[[WorkerId], bool],
        log_bytes: int,
    ) -> None:
        self._folders = folders
        self._publish = publish
        self._ended = ended
        self._logs = LogSpool(folders, log_bytes)
        self._sessions: dict[WorkerId, _AgentSession] = {}
        self._grown: dict[WorkerId, asyncio.Event] = {}

    # ------------------------------------------------------------------ for the runtime

    def notify(self, worker: WorkerId, notice: Notice) -> None:
        """Deliver a notice to the worker's agent with its next poll."""
        session = self._session(worker)
        session.notice = (notice, time.monotonic() + notice.grace_s)
        session.news.set()

    def listens(self, worker: WorkerId) -> bool:
        """Return whether the worker's agent polls for notices now."""
        session = self._sessions.get(worker)
        return session is not None and (
            session.asking > 0 or time.monotonic() - session.last_poll < POLL_GAP_S
        )

    async def stacks(self, worker: WorkerId) -> WorkerStacks:
        """Request the stacks from the worker's agent, and return them."""
        session = self._session(worker)
        if session.look is None or session.look.done():
            session.look, session.look_number = asyncio.get_running_loop().create_future(), None
            session.news.set()
        look = session.look
        try:
            return await asyncio.wait_for(asyncio.shield(look), LOOK_S)
        except TimeoutError:
            if session.look is look:
                session.look = None  # the next call sends a new request
            return WorkerStacks(why=f"Its agent did not answer within {LOOK_S:g} s.")

    def looked(self, worker: WorkerId, found: WorkerStacks) -> None:
        """Store the stacks that an agent sent."""
        session = self._sessions.get(worker)
        if session is not None and session.look is not None and not session.look.done():
            session.look.set_result(found)

    async def shell(self, worker: WorkerId, rows: int, columns: int, term: str) -> AgentShell:
        """Let the worker's agent open a shell, and return it. Raises OSError."""
        if self._ended(worker):
            raise ProcessLookupError(3, "it does not run")
        session = self._session(worker)
        if session.too_old:
            raise OSError(95, "its agent is too old for this; the job's next start has a new one")
        shell = session.shells.ask(rows, columns, term)
        session.news.set()
        return await shell.opening()

    def leave(self, worker: WorkerId) -> None:
        """Forget a worker that has ended."""
        session = self._sessions.pop(worker, None)
        if session is not None:
            session.shells.end()
            if session.look is not None and not session.look.done():
                session.look.set_result(WorkerStacks(why="It has ended."))
        self.grew(worker)

    async def wait_for_growth(self, worker: WorkerId, timeout_s: float) -> None:
        """Wait until the worker's log grows or ends, at most ``timeout_s`` seconds."""
        grown = self._grown.setdefault(worker, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await grown.wait()

    # ------------------------------------------------------------------ for agents

    def admit(self, worker: WorkerId) -> None:
        """Reject the request if its worker has ended. Raises Forbidden.

        A leftover process of an ended worker, or another client with its token, must not fill the
        disk or overwrite what later attempts of the job have saved.
        """
        if self._ended(worker):
            raise Forbidden(
                f"Worker {worker.worker} of attempt {worker.attempt} of job {worker.job[:8]} has "
                "ended, so its token is no longer valid.",
                code="worker-ended",
            )

    async def notice(
        self,
        worker: WorkerId,
        known: str,
        wait_s: float,
        looked: int | None = None,
        shell: str | None = None,
    ) -> PendingNotice | PendingLook | PendingShell | None:
        """Wait for a request to the agent that it has not received, and return it, or None.

        Args:
            looked: Number of the agent's newest request for stacks, ``shell`` its last shell. None
                for an agent of an earlier version, which takes no stacks or opens no shells.
        """
        session = self._session(worker)
        session.too_old = shell is None
        session.asking += 1
        deadline = time.monotonic() + min(wait_s, MOST_WAIT_S)
        try:
            while True:
                if session.notice is not None and session.notice[0].kind != known:
                    notice, until = session.notice
                    left = max(0.0, until - time.monotonic())
                    return PendingNotice(notice.kind, left, notice.for_, notice.text)
                if looked is not None and session.wants_look(looked):
                    session.look_number = looked + 1
                    return PendingLook(session.look_number)
                asked = None if shell is None else session.shells.pending(shell)
                if asked is not None:
                    return asked
                session.news.clear()
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                try:
                    async with asyncio.timeout(left):
                        await session.news.wait()
                except TimeoutError:
                    return None
        finally:
            session.asking -= 1
            session.last_poll = time.monotonic()

    def shell_of(self, worker: WorkerId, id_: str) -> AgentShell:
        """Return an open shell of a worker. Raises NotFound."""
        session = self._sessions.get(worker)
        if session is None:
            raise gone()
        return session.shells.one(id_)

    def append(self, worker: WorkerId, offset: int, data: bytes) -> int:
        """Append a piece of the log; return the offset of the next one. Blocks on disk I/O."""
        return self._logs.append(worker, offset, data)

    def grew(self, worker: WorkerId) -> None:
        """Wake all requests that wait for the worker's log."""
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
        runs: tuple[ReportedRun, ...] = (),
    ) -> None:
        """Report the progress of a worker."""
        saved = (checkpoint_at, checkpoint_step)
        reported = (fraction, text, dict(metrics), *saved)
        self._publish(WorkerProgress(worker, time.time(), *reported, runs=runs))

    def metrics(self, worker: WorkerId, values: Sequence[ReportedValue]) -> None:
        """Report values of a worker, oldest first."""
        self._publish(WorkerMetrics(worker, time.time(), tuple(values)))

    def carried(self, job: str, what: str, index: int) -> Path:
        """Return the path of a worker's packed folder, whether or not it exists."""
        return self._folders.job(job) / "carried" / f"{what}-{index}.tar"

    def _session(self, worker: WorkerId) -> _AgentSession:
        return self._sessions.setdefault(worker, _AgentSession())
