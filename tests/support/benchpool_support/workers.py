"""Real workers for tests: launches of small Python programs, and a listener to their events."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from pathlib import Path
from typing import TypeVar

import psutil

from benchpool_scheduler.runtime import (
    EndedBy,
    Launch,
    Notice,
    Runtime,
    SnapshotEntry,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
    WorkerProgress,
    WorkerStarted,
)
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_support.waiting import PATIENCE_S

_numbers = itertools.count()

E = TypeVar("E", WorkerStarted, WorkerEnded, WorkerProgress)


def made_passable(folder: Path) -> Path:
    """Create a folder that other accounts may traverse, whatever the umask is."""
    folder.mkdir()
    folder.chmod(0o711)
    return folder


def worker_id(*, attempt: int = 1, worker: int = 0) -> WorkerId:
    """Return a worker of a job that no other test uses."""
    return WorkerId(f"{next(_numbers):026d}", attempt, worker)


def python_launch(
    program: str,
    *,
    argv: tuple[str, ...] | None = None,
    worker: WorkerId | None = None,
    working_dir: Path | None = Path("/tmp"),
    env: dict[str, str] | None = None,
    gpus: tuple[str, ...] = ("GPU-1",),
    files: tuple[SnapshotEntry, ...] = (),
    output_dir: Path | None = None,
    account: str | None = None,
    grace_s: float = 10.0,
    time_limit_s: float | None = None,
    nodes: tuple[str, ...] = ("localhost",),
) -> Launch:
    """Return a launch of ``python -c program`` (or ``argv``) that starts quickly."""
    return Launch(
        worker=worker or worker_id(),
        argv=argv or (sys.executable, "-u", "-I", "-S", "-c", program),
        env={"PATH": "/usr/bin:/bin"} if env is None else env,
        gpus=gpus,
        working_dir=working_dir,
        files=files,
        output_dir=output_dir,
        account=account,
        grace_s=grace_s,
        time_limit_s=time_limit_s,
        nodes=nodes,
    )


def pause(grace_s: float = 10.0) -> Notice:
    """Return a notice of a preemption."""
    return Notice("pause", grace_s, "joe/training", "project joe asks for its quota")


def cancel(grace_s: float = 10.0) -> Notice:
    """Return a notice of a user's cancellation."""
    return Notice("cancel", grace_s, "susan", "cancelled by susan")


class Listener:
    """Only consumer of a runtime's events, which keeps them and waits for those of a test."""

    def __init__(self, runtime: Runtime) -> None:
        self.seen: list[WorkerEvent] = []
        self._runtime = runtime
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for event in self._runtime.events():
            async with self._news:
                self.seen.append(event)
                self._news.notify_all()

    async def close(self) -> None:
        """Stop listening."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def started(self, worker: WorkerId) -> WorkerStarted:
        """Return the event that the worker started."""
        return await self._first(worker, WorkerStarted)

    async def ended(self, worker: WorkerId) -> WorkerEnded:
        """Return the event that the worker ended."""
        return await self._first(worker, WorkerEnded)

    async def progress(self, worker: WorkerId) -> WorkerProgress:
        """Return the worker's first progress."""
        return await self._first(worker, WorkerProgress)

    async def next_progress(self, worker: WorkerId, after: WorkerProgress) -> WorkerProgress:
        """Return the progress that follows another one."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            while True:
                later = self.seen[self.seen.index(after) + 1 :]
                for event in later:
                    if event.worker == worker and isinstance(event, WorkerProgress):
                        return event
                await self._news.wait()

    async def exit_of(self, worker: WorkerId) -> tuple[int | None, EndedBy]:
        """Return the exit code and the cause of the end."""
        event = await self.ended(worker)
        return event.exit_code, event.by

    async def _first(self, worker: WorkerId, kind: type[E]) -> E:
        async with asyncio.timeout(PATIENCE_S), self._news:
            while True:
                for event in self.seen:
                    if event.worker == worker and isinstance(event, kind):
                        return event
                await self._news.wait()


async def end_all_workers(state: Path) -> None:
    """End the workers that a test leaves running: they outlive every service, also in tests."""
    last = LocalRuntime(state, simulated(1))
    await last.open([])
    await last.close()
    # Workers that are still ending when the runtime closes end now, with their command.
    kill_workers(state)


def kill_workers(state: Path) -> None:
    """Kill the supervisors of a state folder with all their processes, and wait for their end."""
    supervisors = [one for one in psutil.process_iter() if _is_of(one, state)]
    for supervisor in supervisors:
        with contextlib.suppress(psutil.Error):
            for one in [*supervisor.children(recursive=True), supervisor]:
                with contextlib.suppress(psutil.Error):
                    one.kill()
    psutil.wait_procs(supervisors, timeout=PATIENCE_S)


def _is_of(process: psutil.Process, state: Path) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(f"{state}/" in f"{word}/" for word in process.cmdline()[1:])
    return False


async def whole_log(runtime: Runtime, worker: WorkerId) -> bytes:
    """Return the current content of the log."""
    found, offset = b"", 0
    while True:
        chunk = await runtime.read_log(worker, offset, 1 << 20)
        if not chunk.data:
            return found
        found += chunk.data
        offset = chunk.next_offset


async def until_logged(runtime: Runtime, worker: WorkerId, text: bytes) -> bytes:
    """Wait until the log contains ``text`` and return the log."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await whole_log(runtime, worker)
            if text in found:
                return found
            await runtime.wait_log(worker, len(found), PATIENCE_S)
            if (await runtime.read_log(worker, len(found), 1)).ended:
                found = await whole_log(runtime, worker)
                assert text in found, f"the log ended without {text!r}: {found!r}"
