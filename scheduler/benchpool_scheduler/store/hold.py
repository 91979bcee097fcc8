"""Marker file beside a database that blocks new jobs until an administrator decides.

It is written when a database was lost or damaged. Facts that are missing then cannot be
distinguished from facts that never existed.
"""

from __future__ import annotations

import os
from pathlib import Path


def path_of(database: Path) -> Path:
    """Return the path of the marker file."""
    return database.with_name("safe-mode.txt")


def read(database: Path) -> str | None:
    """Return why new jobs are blocked, or None."""
    try:
        return path_of(database).read_text().strip() or None
    except FileNotFoundError:
        return None


def write(database: Path, sentence: str) -> None:
    """Write the marker file durably. Errors: OSError."""
    path = path_of(database)
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{sentence}\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def release(database: Path) -> None:
    """Allow new jobs again."""
    path_of(database).unlink(missing_ok=True)
