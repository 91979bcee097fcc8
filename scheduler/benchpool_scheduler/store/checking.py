"""Integrity check of a database file, before it is used. The file is only read."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def fault_of(path: Path) -> str | None:
    """Return the fault of a SQLite file in a few words; None for an intact or a missing file."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return "its first bytes are not those of a database"
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            db.execute("PRAGMA cell_size_check = ON")
            verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            db.close()
    except sqlite3.OperationalError as error:
        return str(error) if "malformed" in str(error) else None
    except (sqlite3.DatabaseError, OSError) as error:
        return str(error)
    return None if verdict == "ok" else verdict.replace("\n", " ")[:200]
