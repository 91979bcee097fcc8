"""Start of supervisors, and their identification by boot ID, pid and start time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchpool_scheduler.runtime import Launch, Notice
from benchpool_scheduler.worker import (
    job_package,
    process_identity,
    records,
    stop_signals,
    supervisor_process,
)
from benchpool_scheduler.worker.folders import Folders

from . import ends
from .environment import environment, tag
from .sandbox import Sandbox

LOOK_S = 0.05
"""Poll interval for a supervisor to introduce itself, in seconds."""


@dataclass(frozen=True, slots=True)
class SupervisorHandle:
    """A living supervisor: its pid and a descriptor that becomes readable at its end.

    Attributes:
        heeds: It supports the signals that request a stop without a file.
    """

    pid: int
    pidfd: int
    heeds: bool = True

    def look(self) -> None:
        """Make it read ``stop.json``; no effect if it has just ended."""
        self._send(stop_signals.LOOK)

    def stop(self, kind: str) -> None:
        """Request a stop by a signal; for an earlier version, only make it read ``stop.json``."""
        self._send(stop_signals.WORDLESS[kind] if self.heeds else stop_signals.LOOK)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def reap(self) -> int | None:
        """Release an ended supervisor, and return its exit status.

        None if a signal ended it, if it lives, or if an earlier service started it, so that it is
        not a child of this process.
        """
        pid, status = 0, 0
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        os.close(self.pidfd)
        return os.WEXITSTATUS(status) if pid and os.WIFEXITED(status) else None


def supervisor_config(launch: Launch, folders: Folders, sandbox: Sandbox) -> dict[str, object]:
    """Return the configuration of a supervisor; write the file on the path of every job first.

    Raises OSError.
    """
    worker = launch.worker
    job_package.lay_down(folders.state)
    return {
        "argv": list(launch.argv),
        "env": environment(launch, folders),
        "cwd": None if launch.working_dir is None else str(launch.working_dir),
        "files": [(file.path, file.sha256, file.executable) for file in launch.files],
        "objects": str(folders.objects),
        "folders": [str(folders.checkpoint(worker.job)), str(folders.output(worker.job))],
        "output": str(folders.output(worker.job)),
        "output_dir": None if launch.output_dir is None else str(launch.output_dir),
        "carried": str(folders.packed_results(worker.job, worker.worker)),
        "account": launch.account,
        "grace_s": launch.grace_s,
        "time_limit_s": launch.time_limit_s,
        "tag": tag(launch.worker, folders),
        "name": f"benchpool-{worker.job}-{worker.attempt}-{worker.worker}",
        **sandbox.settings(launch),
    }


def start(folder: Path, config: Mapping[str, object], lock: int) -> tuple[SupervisorHandle, int]:
    """Start a supervisor; return its handle and a pipe that closes when the command runs."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    errors = os.open(folder / "supervisor.err", flags, 0o600)
    program = supervisor_process.Program.installed()
    try:
        pid, ready = supervisor_process.spawn(program, folder, config, lock=lock, errors=errors)
    finally:
        os.close(errors)  # so that the descriptor of the process can use its number
    try:
        return SupervisorHandle(pid, os.pidfd_open(pid)), ready
    except OSError:
        # A supervisor that cannot be watched must not run. It has not begun, and it keeps its pid
        # until it is reaped.
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def request_stop(folder: Path, notice: Notice) -> None:
    """Write the request to stop a worker for its supervisor. Raises OSError."""
    request: dict[str, object] = {
        "kind": notice.kind,
        "grace_s": notice.grace_s,
        "for": notice.for_,
        "text": notice.text,
    }
    records.write(str(folder), records.STOP, request, durable=False)


def find(process: Mapping[str, object]) -> SupervisorHandle | None:
    """Return the supervisor that wrote a process record, or None if it has ended."""
    pid = process.get("pid")
    if process.get("boot_id") != process_identity.boot_id() or not isinstance(pid, int):
        return None
    pidfd = process_identity.open_process(pid, process.get("start_ticks"))
    return None if pidfd is None else SupervisorHandle(pid, pidfd, "heeds" in process)


async def living(folder: Path, patience_s: float) -> SupervisorHandle | None:
    """Return the living supervisor of a worker's folder, or None.

    Raises TimeoutError if it has not introduced itself after ``patience_s`` seconds; it may still
    begin.
    """
    last = time.monotonic() + patience_s
    while await ends.patiently(partial(supervisor_process.is_locked, folder)):
        process = await ends.patiently(partial(records.read, str(folder), records.PROCESS))
        if process is not None:
            return await ends.patiently(partial(find, process))
        if time.monotonic() > last:
            raise TimeoutError(f"the supervisor in {folder} has not identified itself")
        await asyncio.sleep(LOOK_S)
    return None
