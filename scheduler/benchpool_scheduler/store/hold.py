"""A note beside the database that nothing new may begin: kept until an administrator decides.

It is written where a database was lost or damaged, so that what it knew cannot be told from what
never was.
"""

from __future__ import annotations

import os
from pathlib import Path


def path_of(database: Path) -> Path:
    """Return where the note lies."""
    return database.with_name("safe-mode.txt")


def read(database: Path) -> str | None:
    """Return why nothing new may begin, None where it may."""
    try:
        return path_of(database).read_text().strip() or None
    except FileNotFoundError:
        return None


def write(database: Path, sentence: str) -> None:
    """Keep the note, durably. Errors: OSError."""
    path = path_of(database)
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{sentence}\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def release(database: Path) -> None:
    """Let everything begin again."""
    path_of(database).unlink(missing_ok=True)
