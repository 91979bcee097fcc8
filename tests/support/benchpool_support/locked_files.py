"""A SQLite file that another connection has locked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock an unused database against reads and writes."""
    db = sqlite3.connect(file, isolation_level=None, timeout=30)
    try:
        # In WAL mode only this excludes readers, too.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        db.close()
