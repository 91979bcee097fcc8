"""One service per state folder: an advisory lock with its holder's name, released when it exits."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from benchpool_scheduler.errors import Unavailable


class StoreLock:
    """Exclusive ``flock`` on a file beside the database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or name its holder in the error. Errors: Unavailable ``store-locked``."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            raise Unavailable(
                f"The state folder {self._path.parent} is in use by {holder}. Stop that process "
                "or choose another --state.",
                code="store-locked",
                numbers={"holder": holder},
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
