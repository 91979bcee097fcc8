"""Check that an open database is still the file under its name.

Users and cleanup scripts delete or replace files. Data written to a deleted file is lost when the
process exits, so nothing may be acknowledged after a deletion.
"""

from __future__ import annotations

import os
import sqlite3
from enum import Enum
from pathlib import Path


class FileState(Enum):
    """State of the file under the name of an open database."""

    OURS = "ours"
    GONE = "gone"
    ANOTHER = "another"


class Presence:
    """Identity of an open database's file, by device and inode."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = Path(f"{path}-wal")
        self._known = _identity(path)
        self._known_log = _identity(self._log)

    def look(self) -> FileState:
        """Return the current state of the file."""
        now = _identity(self._path)
        if now is None:
            return FileState.GONE
        if now != self._known:
            return FileState.ANOTHER
        self._known_log = _identity(self._log) or self._known_log
        return FileState.OURS

    def write_back(self, connection: sqlite3.Connection) -> None:
        """Write the deleted file back in full; its data exists while it is open.

        The connection must not be used afterwards. Errors: OSError, sqlite3.Error.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_name(f"{self._path.name}.written-back")
        temporary.unlink(missing_ok=True)
        target = sqlite3.connect(temporary)
        try:
            connection.backup(target)
        finally:
            target.close()
        temporary.chmod(0o600)
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.drop_log()
        temporary.replace(self._path)

    def drop_log(self) -> None:
        """Remove our write-ahead log beside a file that it does not belong to."""
        if _identity(self._log) == self._known_log:
            self._log.unlink(missing_ok=True)
            Path(f"{self._path}-shm").unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
