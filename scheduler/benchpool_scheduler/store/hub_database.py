"""Repair of a damaged database of the Hub: its readable rows replace it.

The tables are JupyterHub's, so their definitions come from the damaged file, or else from a backup.
The damaged file is only read and kept under another name. A note beside the database reports the
repair.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.phrases import count
from benchpool_scheduler.store import hold
from benchpool_scheduler.store.checking import fault_of
from benchpool_scheduler.store.salvage import Rows, mend_header

NAME = "jupyterhub.sqlite"
VERSION = "alembic_version"
VERSION_OF = "SELECT version_num FROM alembic_version"
COUNTED = {"users": "user", "spawners": "notebook server", "api_tokens": "token"}
"""Nouns for the rows that the note counts, by table."""

MOST_GAP = 1_000_000
MOST_SWEEPS = 20


@dataclass(frozen=True, slots=True)
class Found:
    """Number of recovered rows by table, and whether no damage was found."""

    rows: dict[str, int]
    whole: bool


def path_in(state: Path) -> Path:
    """Return the path of the Hub's database in a state folder."""
    return state / "hub" / NAME


def mend(database: Path) -> str | None:
    """Replace a damaged database by its readable rows; return None when it is intact.

    Returns a sentence about the repair, which is also written as a note. No process may have the
    database open. Errors: OSError, sqlite3.Error when the disk cannot be written; then all is as it
    was.
    """
    fault = fault_of(database)
    if fault is None:
        return None
    backups = database.parent.parent / "backups"
    copy = max(backups.glob(f"*/{NAME}"), default=None)
    new = database.with_name(f".{NAME}.salvaged")
    found = _salvage(database, new, copy)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    aside = database.with_name(f"{NAME}.damaged-{stamp}")
    sentence = _sentence(database, fault, found, aside, copy)
    hold.write(database, sentence)
    os.link(database, aside)
    for suffix in ("-wal", "-shm", "-journal"):
        left = Path(f"{database}{suffix}")
        if left.exists():
            left.replace(f"{aside}{suffix}")
    if found is None:
        database.unlink()
    else:
        new.chmod(0o600)
        new.replace(database)
    return sentence


def _salvage(damaged: Path, target: Path, copy: Path | None) -> Found | None:
    """Write the readable rows into a new file; return None when its tables are unknown."""
    source = target.with_name(f"{target.name}.source")
    _remove(source, target)
    for suffix in ("", "-wal", "-journal"):
        if Path(f"{damaged}{suffix}").exists():
            shutil.copyfile(f"{damaged}{suffix}", f"{source}{suffix}")
    try:
        _write_empty(target)
        mend_header(source, target)
        found = _read_into(source, target, copy)
    finally:
        _remove(source)
    if found is None or fault_of(target) is not None:
        _remove(target)
        return None
    return found


def _read_into(source: Path, target: Path, copy: Path | None) -> Found | None:
    old, new = _open(source), _open(target)
    spare = None if copy is None else _open(copy)
    try:
        # The Hub rejects a database without its version.
        version = next(iter(Rows(old, VERSION_OF)), None)
        if version is None and spare is not None:
            version = next(iter(Rows(spare, VERSION_OF)), None)
        made = _tables(old) or ([] if spare is None else _tables(spare))
        if version is None or not made:
            return None
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN")
        new.execute("DROP TABLE spare")
        for _, sql in made:
            new.execute(sql)
        names = [table for table, _ in made if table != VERSION]
        damaged = [table for table in names if not _copy_table(old, new, table)]
        new.execute("INSERT INTO alembic_version VALUES (?)", version)
        strays = _drop_strays(new)
        new.execute("COMMIT")
        return Found({table: _rows_of(new, table) for table in names}, not damaged and not strays)
    finally:
        for db in (old, new, spare):
            if db is not None:
                db.close()


def _tables(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return name and definition of each table; empty when they cannot all be read."""
    rows = Rows(db, "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    found = [(str(name), str(sql)) for kind, name, sql in rows if kind == "table"]
    names = {name for name, _ in found}
    return found if rows.ended and {VERSION, *COUNTED} <= names else []


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> bool:
    """Copy the readable rows, from both ends and by row number; return whether all were read."""
    columns = ", ".join(f'"{row[1]}"' for row in new.execute(f'PRAGMA table_info("{table}")'))
    marks = ", ".join("?" * (columns.count(",") + 2))
    insert = f'INSERT OR IGNORE INTO "{table}" (rowid, {columns}) VALUES ({marks})'  # noqa: S608
    select = f'SELECT rowid, {columns} FROM "{table}"'  # noqa: S608
    for direction in ("ASC", "DESC"):
        rows = Rows(old, f"{select} ORDER BY rowid {direction}")
        new.executemany(insert, rows)
        if rows.ended:
            return direction == "ASC"
    known = {row[0] for row in new.execute(f'SELECT rowid FROM "{table}"')}  # noqa: S608
    number, last = 1, max(known, default=0)
    while number <= min(last, MOST_GAP):
        if number not in known:
            for row in Rows(old, f"{select} WHERE rowid >= ? ORDER BY rowid", (number,)):
                new.execute(insert, row)
                known.add(row[0])
                number = row[0]
        number += 1
    return False


def _drop_strays(new: sqlite3.Connection) -> int:
    """Remove rows that reference missing rows, and return their number."""
    dropped = 0
    for _ in range(MOST_SWEEPS):
        strays = {(str(row[0]), row[1]) for row in new.execute("PRAGMA foreign_key_check")}
        if not strays:
            break
        for table, rowid in strays:
            new.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (rowid,))  # noqa: S608
        dropped += len(strays)
    return dropped


def _rows_of(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0])  # noqa: S608


def _open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA trusted_schema = OFF")
    return db


def _write_empty(path: Path) -> None:
    """Write a new database whose file header is intact."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE spare (x)")
    db.commit()
    db.close()


def _remove(*paths: Path) -> None:
    for path in paths:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)


def _sentence(
    database: Path, fault: str, found: Found | None, aside: Path, copy: Path | None
) -> str:
    if found is None:
        read = "Nothing could be read from it, and the Hub has created a new one."
    else:
        numbers = [count(found.rows.get(table, 0), word) for table, word in COUNTED.items()]
        rest = "nothing is missing" if found.whole else "other rows may be lost"
        read = f"{', '.join(numbers[:-1])} and {numbers[-1]} could be read from it; {rest}."
    way_back = ""
    if copy is not None:
        state = database.parent.parent
        way_back = (
            f" To restore the newest copy instead: `benchpool down --state {state}`, then `cp "
            f"{copy} {database}`, then start it again."
        )
    return (
        f"The Hub's database {database} was damaged ({fault}). {read} The damaged file is kept as "
        f"{aside}. Jobs are not affected. A running notebook server that the Hub does not list "
        "keeps its GPUs until `benchpool adopt --go-on`: end its process by hand before "
        f"that.{way_back}"
    )
