"""Start supervisors, and know them again by boot id, pid and start time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.runtime import Launch

from .environment import environment, tag
from .folders import Folders
from .supervisor import records, run

PACKAGE = Path(run.__file__).parent

BOOT = """
import sys
sys.path.append(sys.argv[1])
__import__(sys.argv[2], fromlist=["main"]).main(sys.argv[3:])
"""


@dataclass(frozen=True, slots=True)
class Handle:
    """A living supervisor: its pid and a descriptor that becomes readable at its end."""

    pid: int
    pidfd: int

    def tell(self) -> None:
        """Make it look at ``stop.json``; no harm when it has just ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGUSR1)

    def reap(self) -> None:
        """Let go of an ended one; one that an earlier service started is not our child."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        os.close(self.pidfd)


def order(launch: Launch, folders: Folders, log_bytes: int) -> dict[str, object]:
    """Return what a supervisor is told."""
    worker = launch.worker
    return {
        "argv": list(launch.argv),
        "env": environment(launch, folders),
        "cwd": None if launch.working_dir is None else str(launch.working_dir),
        "files": [(file.path, file.sha256, file.executable) for file in launch.files],
        "objects": str(folders.objects),
        "folders": [str(folders.checkpoint(worker.job)), str(folders.output(worker.job))],
        "output": str(folders.output(worker.job)),
        "output_dir": None if launch.output_dir is None else str(launch.output_dir),
        "account": launch.account,
        "grace_s": launch.grace_s,
        "time_limit_s": launch.time_limit_s,
        "log_bytes": log_bytes,
        "tag": tag(launch, folders),
        "name": f"benchpool-{worker.job}-{worker.attempt}-{worker.worker}",
    }


def take_lock(folder: Path) -> int | None:
    """Take the lock of a worker's folder; None while a supervisor lives there."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(folder / records.LOCK, flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def is_locked(folder: Path) -> bool:
    """Return whether a supervisor lives there."""
    try:
        lock = take_lock(folder)
    except OSError:
        return False
    if lock is None:
        return True
    os.close(lock)
    return False


def spawn(folder: Path, told: Mapping[str, object], lock: int) -> tuple[Handle, int]:
    """Start a supervisor; return its handle and a pipe that closes when the command runs.

    The order travels in an anonymous file: it holds the environment, and so perhaps secrets.
    """
    ready, ready_writer = os.pipe2(os.O_CLOEXEC)
    order_file = os.memfd_create("order", os.MFD_CLOEXEC)
    os.write(order_file, json.dumps(told).encode())
    os.lseek(order_file, 0, os.SEEK_SET)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    sources = [order_file, null, _errors(folder), lock, ready_writer]
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20) for descriptor in sources]
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(high)]
    own = (str(PACKAGE.parent), PACKAGE.name + ".run", str(folder))
    arguments = [sys.executable, "-I", "-S", "-X", "utf8", "-c", BOOT, *own]
    try:
        pid = os.posix_spawn(sys.executable, arguments, {}, file_actions=actions, setsid=True)
        return Handle(pid, os.pidfd_open(pid)), ready
    finally:
        for descriptor in (*high, order_file, null, sources[2], ready_writer):
            os.close(descriptor)


def _errors(folder: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(folder / "supervisor.err", flags, 0o600)


def find(process: Mapping[str, object]) -> Handle | None:
    """Return the supervisor that wrote a process record, if it still lives."""
    pid, ticks = process.get("pid"), process.get("start_ticks")
    if process.get("boot_id") != records.boot_id() or not isinstance(pid, int):
        return None
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    # Compared after the descriptor is open: from here on the pid cannot be another process.
    if records.start_ticks(pid) != ticks:
        os.close(pidfd)
        return None
    return Handle(pid, pidfd)
