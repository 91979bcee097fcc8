"""One service per state folder: an advisory lock that names its holder and dies with it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from benchpool_scheduler.errors import Unavailable


class StoreLock:
    """An exclusive ``flock`` on a file beside the database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock or say who has it. Errors: Unavailable ``store-locked``."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            raise Unavailable(
                f"The state folder {self._path.parent} is in use by {holder}; "
                "end that one or choose another --state.",
                code="store-locked",
                numbers={"holder": holder},
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
