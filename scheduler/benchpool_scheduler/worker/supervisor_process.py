"""Start a supervisor as a process of its own: from the installed package, or from a zip file."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import records

BOOT = """
import sys
sys.path.append(sys.argv[1])
__import__(sys.argv[2], fromlist=["main"]).main(sys.argv[3:])
"""


@dataclass(frozen=True, slots=True)
class Program:
    """Where the supervisor's modules are.

    Attributes:
        root: Folder or zip file that is added to Python's path. ``module``: the one with ``main``.
    """

    root: str
    module: str

    @classmethod
    def installed(cls) -> Program:
        """Return the modules beside this one, below which nothing of the scheduler is imported."""
        package = Path(__file__).parent
        return cls(str(package.parent), f"{package.name}.supervisor.run")

    @classmethod
    def zipped(cls, path: str) -> Program:
        """Return the modules in a zip file that holds them by their whole names."""
        return cls(path, "benchpool_scheduler.worker.supervisor.run")


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


def spawn(
    program: Program, folder: Path, told: Mapping[str, object], *, lock: int, errors: int
) -> tuple[int, int]:
    """Start a supervisor; return its pid and a pipe that closes when the command runs.

    What it is told travels in an anonymous file: it holds the environment, and so perhaps secrets.

    Args:
        folder: The worker's. ``told``: what its ``SupervisorConfig`` reads.
        lock: Descriptor that the supervisor keeps open; ``errors``: its standard error.
    """
    ready, ready_writer = os.pipe2(os.O_CLOEXEC)
    config_file = os.memfd_create("config", os.MFD_CLOEXEC)
    os.write(config_file, json.dumps(told).encode())
    os.lseek(config_file, 0, os.SEEK_SET)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    sources = [config_file, null, errors, lock, ready_writer]
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20) for descriptor in sources]
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(high)]
    own = (program.root, program.module, str(folder))
    arguments = [sys.executable, "-I", "-S", "-X", "utf8", "-c", BOOT, *own]
    try:
        pid = os.posix_spawn(sys.executable, arguments, {}, file_actions=actions, setsid=True)
    except OSError:
        os.close(ready)
        raise
    finally:
        for descriptor in (*high, config_file, null, ready_writer):
            os.close(descriptor)
    return pid, ready
