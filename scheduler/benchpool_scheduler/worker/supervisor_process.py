"""Start of a supervisor as a process, from the installed package or from a zip file.

Other programs of ``worker`` are started in the same way.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import machine_faults, records

BOOT = """
import sys
sys.path.append(sys.argv[1])
__import__(sys.argv[2], fromlist=["main"]).main(sys.argv[3:])
"""
SUPERVISOR = "supervisor.run"


@dataclass(frozen=True, slots=True)
class Program:
    """A program of ``worker``, and the location of its modules.

    Attributes:
        root: Folder or zip file that is added to Python's path. ``module``: the one with ``main``.
    """

    root: str
    module: str

    @classmethod
    def installed(cls, module: str = SUPERVISOR) -> Program:
        """Return a program of this installation, without access to the scheduler's modules."""
        package = Path(__file__).parent
        return cls(str(package.parent), f"{package.name}.{module}")

    @classmethod
    def zipped(cls, path: str, module: str = SUPERVISOR) -> Program:
        """Return a program in a zip file that contains the modules under their full names."""
        return cls(path, f"benchpool_scheduler.worker.{module}")

    def command(self, *words: str) -> list[str]:
        """Return the command for this Python, isolated from the user's Python set-up."""
        alone = (sys.executable, "-I", "-S", "-X", "utf8", "-c", BOOT)
        return [*alone, self.root, self.module, *words]


def take_lock(folder: Path) -> int | None:
    """Take the lock of a worker's folder; return None while its supervisor lives."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(folder / records.LOCK, flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lock


def is_locked(folder: Path) -> bool:
    """Return whether a supervisor of this folder lives.

    Raises:
        OSError: The machine cannot answer now (``machine_faults``).
    """
    try:
        lock = take_lock(folder)
    except OSError as error:
        if machine_faults.number_of(error) is not None:
            raise
        return False
    if lock is None:
        return True
    os.close(lock)
    return False


def spawn(
    program: Program, folder: Path, config: Mapping[str, object], *, lock: int, errors: int
) -> tuple[int, int]:
    """Start a supervisor; return its pid and a pipe that closes when the command runs.

    The configuration is passed in an anonymous file, because its environment may contain secrets.

    Args:
        folder: The worker's folder. ``config``: the configuration for its ``SupervisorConfig``.
        lock: Descriptor that the supervisor keeps open; ``errors``: its standard error.
    """
    with contextlib.ExitStack() as opened:

        def kept(descriptor: int) -> int:
            opened.callback(os.close, descriptor)
            return descriptor

        ready, writer = os.pipe2(os.O_CLOEXEC)
        kept(writer)
        try:
            config_file = kept(os.memfd_create("config", os.MFD_CLOEXEC))
            os.write(config_file, json.dumps(config).encode())
            os.lseek(config_file, 0, os.SEEK_SET)
            null = kept(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
            sources = [config_file, null, errors, lock, writer]
            high = [kept(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 20)) for one in sources]
            actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(high)]
            arguments = program.command(str(folder))
            pid = os.posix_spawn(arguments[0], arguments, {}, file_actions=actions, setsid=True)
        except OSError:
            os.close(ready)
            raise
    return pid, ready
