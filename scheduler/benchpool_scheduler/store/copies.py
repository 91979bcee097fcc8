"""Backups of databases: written whole by SQLite, checked, put in place; the newest n are kept.

backups/2026-11-22T040000.125000Z-daily/    pool.sqlite  jupyterhub.sqlite  benchpool.yaml
                                            audit/  past-jobs/  curves/  sweeps/  schedules/
                                            services/
backups/2026-11-22T091503.250000Z-before-version-4/    pool.sqlite
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.store import schema
from benchpool_scheduler.store.checking import fault_of

PAGES = 500
"""Pages copied in one step, about 2 MB; a commit waits for at most one step."""

PAUSE_S = 0.01
"""Delay before a step that was blocked by another connection's lock is retried, in seconds."""

BEFORE_VERSION = "before-version"
KEPT_BEFORE = 3
"""Number of kept copies from before migrations."""


CopyFailed = sqlite3.Error
"""Exception of a failed copy, besides OSError."""


def folder_name(kind: str) -> str:
    """Return a unique name for a new copy; newer names sort last."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    stamp = time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(seconds))
    return f"{stamp}.{nanoseconds // 1000:06d}Z-{kind}"


def write_copy(
    connection: sqlite3.Connection, target: Path, between: Callable[[int, int, int], None]
) -> None:
    """Write a copy and check it; ``between`` is called after each step.

    Errors: OSError, sqlite3.Error; then no copy is left.
    """
    temporary = target.with_name(f".{target.name}.new")
    temporary.unlink(missing_ok=True)
    copy = sqlite3.connect(temporary)
    try:
        # SQLite holds the source's lock while it writes a step, so it must not flush then.
        copy.execute("PRAGMA synchronous = OFF")
        connection.backup(copy, pages=PAGES, progress=between, sleep=PAUSE_S)
        # A single file without a write-ahead log, which any tool can copy.
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    fault = fault_of(temporary)
    if fault is not None:
        temporary.unlink(missing_ok=True)
        raise sqlite3.DatabaseError(fault)
    temporary.chmod(0o600)
    descriptor = os.open(temporary, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(target)


def copy_file(source: Path, target: Path) -> None:
    """Copy a database that another process may be using. Errors: as ``write_copy``."""
    connection = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)
    try:
        write_copy(connection, target, lambda *_: None)
    finally:
        connection.close()


def before_migration(connection: sqlite3.Connection, database: Path, version: int) -> None:
    """Copy the database before a migration changes it. Errors: OSError, sqlite3.Error."""
    backups = database.parent.parent / "backups"
    kind = f"{BEFORE_VERSION}-{version + 1}"
    folder = backups / folder_name(kind)
    folder.mkdir(parents=True, mode=0o700)
    write_copy(connection, folder / database.name, lambda *_: None)
    keep(backups, kind, KEPT_BEFORE)


def keep(backups: Path, kind: str, most: int) -> None:
    """Remove the oldest copies of a kind beyond the newest ``most``."""
    found = sorted(it for it in backups.glob(f"*-{kind}") if it.is_dir())
    for old in found[: max(0, len(found) - most)]:
        shutil.rmtree(old, ignore_errors=True)


def newest(backups: Path, kind: str) -> Path | None:
    """Return the newest copy of a kind, or None."""
    return max((it for it in backups.glob(f"*-{kind}") if it.is_dir()), default=None)


def version_of(database: Path) -> int:
    """Return the schema version of a pool's database. Errors: sqlite3.Error."""
    connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def is_known(version: int) -> bool:
    """Return whether this release can open a database of this version."""
    return 0 < version <= len(schema.MIGRATIONS)
