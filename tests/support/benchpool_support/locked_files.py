"""A SQLite file that somebody else keeps to themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep others from reading and writing a database that nobody has open."""
    db = sqlite3.connect(file, isolation_level=None, timeout=30)
    try:
        # In WAL mode only this keeps readers out, too.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        db.close()
