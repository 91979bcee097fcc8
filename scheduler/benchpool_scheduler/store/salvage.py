"""Recovery of the readable rows of a damaged database; the damaged file is only read.

SQLite stops a query at the first damaged page. So each table is read in both directions up to the
damage, and rows beyond it are looked up by key. A job's key is its number; its other records are
found by the job's ID. A file that lost only its first bytes gets the header of a new database.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchpool_scheduler.store import schema

HEADER = 100
"""Size of the file header at the beginning of the first page, in bytes."""

TABLES = ("jobs", "attempts", "preemptions", "leases", "held_gpus", "objects", "job_objects",
          "past_use", "start_calibration", "nodes")  # fmt: skip
OF_JOB = frozenset({"attempts", "preemptions", "held_gpus", "job_objects"})
MOST_BYTES = 2**40
MOST_GAP = 1_000_000
"""Largest job number that is looked up beyond the damage."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Number of recovered rows by table, and whether each table was undamaged."""

    rows: dict[str, int]
    whole: dict[str, bool]


def salvage(damaged: Path, target: Path) -> Salvaged:
    """Write the readable rows of ``damaged``, with its write-ahead log, into a new database.

    Errors: OSError, sqlite3.Error when the new database cannot be written.
    """
    copy = target.with_name(f"{target.name}.source")
    for suffix in ("", "-wal"):
        source, to = Path(f"{damaged}{suffix}"), Path(f"{copy}{suffix}")
        to.unlink(missing_ok=True)
        if source.exists():
            shutil.copyfile(source, to)
    target.unlink(missing_ok=True)
    new = sqlite3.connect(target, isolation_level=None)
    try:
        schema.migrate(new)
        mend_header(copy, target)
        found = _read_into(new, copy)
        schema.configure(new)
    finally:
        new.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return found


def _read_into(new: sqlite3.Connection, copy: Path) -> Salvaged:
    rows, whole = dict.fromkeys(TABLES, 0), dict.fromkeys(TABLES, False)
    try:
        old = sqlite3.connect(copy, isolation_level=None)
    except sqlite3.Error:
        return Salvaged(rows, whole)
    try:
        old.execute("PRAGMA trusted_schema = OFF")
        # The layout of an unknown version is not known; its rows would be misread.
        version = int(old.execute("PRAGMA user_version").fetchone()[0])
        _bring_to(new, version)
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN")
        for table in TABLES:
            rows[table], whole[table] = _copy(old, new, table)
        new.execute("COMMIT")
    except sqlite3.Error:
        if new.in_transaction:
            new.execute("ROLLBACK")
    finally:
        old.close()
    return Salvaged(rows, whole)


def _bring_to(new: sqlite3.Connection, version: int) -> None:
    """Set the new file to an older version; the writer migrates it as usual."""
    if 0 < version < len(schema.MIGRATIONS):
        new.execute(f"PRAGMA user_version = {version}")


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> tuple[int, bool]:
    columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 (names of ours)
    select = f"SELECT {names} FROM {table}"  # noqa: S608
    key = [row[1] for row in new.execute(f"PRAGMA table_info({table})") if row[5]]
    whole = True
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{name} {direction}" for name in key)
        reader = Rows(old, f"{select} ORDER BY {order}")
        for row in reader:
            new.execute(insert, row)
        if reader.ended:
            break
        whole = False
    if not whole and table == "jobs":
        _beyond_gaps(old, new, select, insert)
    if not whole and table in OF_JOB:
        for (job,) in new.execute("SELECT id FROM jobs").fetchall():
            for row in Rows(old, f"{select} WHERE job = ?", (job,)):
                new.execute(insert, row)
    return int(new.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]), whole  # noqa: S608


def _beyond_gaps(
    old: sqlite3.Connection, new: sqlite3.Connection, select: str, insert: str
) -> None:
    """Read the jobs between two damaged places by their numbers."""
    known = {row[0] for row in new.execute("SELECT number FROM jobs")}
    last, number = max(known, default=0), 1
    while number <= last and number < MOST_GAP:
        if number in known:
            number += 1
            continue
        at = number
        for row in Rows(old, f"{select} WHERE number >= ? ORDER BY number", (number,)):
            new.execute(insert, row)
            known.add(row[0])
            at = row[0]
        number = max(at, number) + 1


class Rows:
    """Rows of a query up to the first damage; ``ended`` when there was none."""

    def __init__(self, db: sqlite3.Connection, sql: str, parameters: Sequence[object] = ()) -> None:
        self._db, self._sql, self._parameters = db, sql, parameters
        self.ended = False

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._db.execute(self._sql, self._parameters)
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return
        self.ended = True


def mend_header(copy: Path, like: Path) -> None:
    """Write the header of a new database into a file without one, with the file's size."""
    with copy.open("r+b") as damaged, like.open("rb") as new:
        if damaged.read(16) == b"SQLite format 3\0":
            _mend_size(copy, damaged.read(HEADER - 16))
            return
        header = bytearray(new.read(HEADER))
        page = int.from_bytes(header[16:18], "big") or 65536
        size = copy.stat().st_size
        header[18:20] = b"\x02\x02"  # with a write-ahead log
        header[28:32] = (size // (1 if page == 1 else page)).to_bytes(4, "big")
        header[32:40] = bytes(8)  # free pages are unknown
        header[92:96] = header[24:28]  # makes the size valid
        damaged.seek(0)
        damaged.write(header)


def _mend_size(copy: Path, header: bytes) -> None:
    """Extend a truncated file to the size in its header; SQLite would read nothing otherwise."""
    page = int.from_bytes(header[0:2], "big")
    size = int.from_bytes(header[12:16], "big") * (65536 if page == 1 else page)
    if copy.stat().st_size < size < MOST_BYTES:
        os.truncate(copy, size)
