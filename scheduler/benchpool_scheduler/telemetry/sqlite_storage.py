"""The telemetry database as a file beside the state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError

from benchpool_scheduler.telemetry import schema
from benchpool_scheduler.telemetry.storage import UnknownLayout

FILE = "telemetry.sqlite"
LOCKED_S = 1.0
"""Timeout for a lock of another process, in seconds."""


class SqliteFile:
    """Storage in a SQLite file.

    Args:
        folder: Folder of the file; created when missing.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self._opened: tuple[int, int] | None = None

    @property
    def place(self) -> str:
        """Return the path."""
        return str(self.file)

    def connect(self) -> Engine:
        """Open or create the file, check its integrity, and create missing tables."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        found = self._identity()
        if found is None or self._opened not in (None, found):
            self._remove_logs()  # SQLite would write another file's logs into this one
        engine = sa.create_engine(f"sqlite:///{self.file}", connect_args={"timeout": LOCKED_S})
        sa.event.listen(engine, "connect", _prepare)
        try:
            with engine.begin() as connection:
                layout = connection.scalar(sa.text("PRAGMA user_version"))
                if layout not in (0, schema.LAYOUT):
                    raise UnknownLayout(layout)
                wrong = connection.scalar(sa.text("PRAGMA quick_check(1)"))
                if wrong != "ok":
                    raise DatabaseError("", None, Exception(str(wrong)))
                schema.metadata.create_all(connection)
                connection.execute(sa.text(f"PRAGMA user_version = {schema.LAYOUT}"))
        except BaseException:
            engine.dispose()
            raise
        self._opened = self._identity()
        return engine

    def lost(self) -> str | None:
        """Return how the file was lost since it was opened, or None.

        SQLite continues to write into a removed file, whose data is lost afterwards.
        """
        found = self._identity()
        if found == self._opened:
            return None
        return "was removed" if found is None else "was replaced"

    def set_aside(self, damage: DatabaseError) -> str | None:
        """Rename the file."""
        aside = self.file.with_name(f"{self.file.name}.damaged")
        self._remove_logs()
        if self.file.exists():
            os.replace(self.file, aside)
        return f"It was renamed to {aside.name} beside"

    def size(self) -> int:
        """Return the size of the file, its log and its index in bytes."""
        files = (self.file.with_name(self.file.name + end) for end in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _remove_logs(self) -> None:
        """Remove SQLite's logs beside a missing file."""
        for end in ("-wal", "-shm"):
            self.file.with_name(self.file.name + end).unlink(missing_ok=True)

    def _identity(self) -> tuple[int, int] | None:
        """Return device and inode of the file, or None when it is missing."""
        try:
            found = self.file.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def _prepare(connection: Any, _record: object) -> None:
    """Set up a connection, without a flush per write: the newest rows may be lost in a crash."""
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=OFF"):
        connection.execute(f"PRAGMA {pragma}")
