"""Start supervisors, and know them again by boot id, pid and start time."""

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
"""Seconds between two looks whether a supervisor has said who it is."""


@dataclass(frozen=True, slots=True)
class SupervisorHandle:
    """A living supervisor: its pid and a descriptor that becomes readable at its end.

    Attributes:
        heeds: It knows the signals that say a stop without a file.
    """

    pid: int
    pidfd: int
    heeds: bool = True

    def look(self) -> None:
        """Make it look at ``stop.json``; no harm when it has just ended."""
        self._send(stop_signals.LOOK)

    def stop(self, kind: str) -> None:
        """Tell it to stop its worker, without a word; one of an earlier version cannot know."""
        self._send(stop_signals.WORDLESS[kind] if self.heeds else stop_signals.LOOK)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def reap(self) -> int | None:
        """Let go of an ended one, and return its exit status.

        None for one that a signal ended, that lives, or that an earlier service started: that one
        is not our child.
        """
        pid, status = 0, 0
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        os.close(self.pidfd)
        return os.WEXITSTATUS(status) if pid and os.WIFEXITED(status) else None


def supervisor_config(launch: Launch, folders: Folders, sandbox: Sandbox) -> dict[str, object]:
    """Return what a supervisor is told; the file on the path of every job is laid down first.

    Errors: OSError.
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
        **sandbox.told(launch),
    }


def start(folder: Path, told: Mapping[str, object], lock: int) -> tuple[SupervisorHandle, int]:
    """Start a supervisor; return its handle and a pipe that closes when the command runs."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    errors = os.open(folder / "supervisor.err", flags, 0o600)
    program = supervisor_process.Program.installed()
    try:
        pid, ready = supervisor_process.spawn(program, folder, told, lock=lock, errors=errors)
    finally:
        os.close(errors)  # its number is free for the descriptor of the process
    try:
        return SupervisorHandle(pid, os.pidfd_open(pid)), ready
    except OSError:
        # One that we cannot watch must not run. It has not begun; until we reap it, it has its pid.
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def request_stop(folder: Path, notice: Notice) -> None:
    """Write what a worker's supervisor shall stop it for. Errors: OSError."""
    request: dict[str, object] = {
        "kind": notice.kind,
        "grace_s": notice.grace_s,
        "for": notice.for_,
        "text": notice.text,
    }
    records.write(str(folder), records.STOP, request, durable=False)


def find(process: Mapping[str, object]) -> SupervisorHandle | None:
    """Return the supervisor that wrote a process record, if it still lives."""
    pid = process.get("pid")
    if process.get("boot_id") != process_identity.boot_id() or not isinstance(pid, int):
        return None
    pidfd = process_identity.open_process(pid, process.get("start_ticks"))
    return None if pidfd is None else SupervisorHandle(pid, pidfd, "heeds" in process)


async def living(folder: Path, patience_s: float) -> SupervisorHandle | None:
    """Return the supervisor that lives in a worker's folder; None where none does.

    Errors: TimeoutError, one lives there that has not said for so long who it is. It may yet begin.
    """
    last = time.monotonic() + patience_s
    while await ends.patiently(partial(supervisor_process.is_locked, folder)):
        process = await ends.patiently(partial(records.read, str(folder), records.PROCESS))
        if process is not None:
            return await ends.patiently(partial(find, process))
        if time.monotonic() > last:
            raise TimeoutError(f"the supervisor in {folder} has not said who it is")
        await asyncio.sleep(LOOK_S)
    return None
