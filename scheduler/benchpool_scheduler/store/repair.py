"""Repair of a lost or damaged database, before it is opened.

Nothing is deleted. The damaged file is kept under another name, and its readable rows replace it.
The service then blocks new jobs until an administrator decides (``hold``).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchpool_scheduler.store import hold
from benchpool_scheduler.store.salvage import Salvaged, salvage

WAY_OUT = (
    "Running jobs continue and are monitored. Nothing new is started or accepted until an "
    "administrator decides: `benchpool adopt` lists running jobs that the database does not "
    "contain, `benchpool adopt --go-on` continues with the present database"
)


def _way_out(database: Path) -> str:
    """Return the administrator's options, with the newest backup if there is one."""
    state = database.parent.parent
    newest = max(state.glob("backups/*/pool.sqlite"), default=None)
    if newest is None:
        return f"{WAY_OUT}."
    return (
        f"{WAY_OUT}, and `benchpool down --state {state}` and then `benchpool restore "
        f"{newest.parent} --state {state}` restore the newest copy."
    )


def note_loss(database: Path, jobs: Path) -> None:
    """Block new jobs when the database is missing or empty although jobs have files."""
    there = database.exists()
    if there and database.stat().st_size > 0:
        return
    try:
        known = sum(1 for _ in os.scandir(jobs))
    except OSError:
        known = 0
    if known == 0 or hold.read(database) is not None:
        return
    what = "is empty" if there else "is missing"
    log = Path(f"{database}-wal")
    if log.exists():  # SQLite would delete the log
        log.replace(f"{database}.lost-{_stamp()}-wal")
    hold.write(
        database,
        f"The database {database} {what}, and {jobs} has the files of {known} jobs. The waiting "
        f"jobs and the holders of benches are no longer known. {_way_out(database)}",
    )


def set_aside(database: Path, fault: str) -> None:
    """Replace a damaged database by its readable rows, and block new jobs.

    Errors: OSError, sqlite3.Error when the disk cannot be written; then all is as it was.
    """
    aside = database.with_name(f"{database.name}.damaged-{_stamp()}")
    new = database.with_name(f"{database.name}.salvaged")
    found = salvage(database, new)
    hold.write(
        database,
        f"The database {database} was damaged ({fault}). {_in_words(found)} The damaged file is "
        f"kept as {aside}. {_way_out(database)}",
    )
    # A crash from here on leaves one of the two files in place, and the note.
    os.link(database, aside)
    for suffix in ("-wal", "-shm"):
        left = Path(f"{database}{suffix}")
        if left.exists():
            left.replace(f"{aside}{suffix}")
    new.replace(database)
    _sync(database.parent)


def _in_words(found: Salvaged) -> str:
    """Return the numbers of recovered rows as sentences.

    >>> _in_words(Salvaged({"jobs": 2, "leases": 0}, {"jobs": False, "leases": True}))
    '2 jobs and 0 benches could be read from it; others may be lost.'
    """
    whole = found.whole.get("jobs") and found.whole.get("leases")
    rest = "and no job is missing" if whole else "others may be lost"
    jobs, leases = found.rows.get("jobs", 0), found.rows.get("leases", 0)
    separator = "," if whole else ";"
    return f"{jobs} jobs and {leases} benches could be read from it{separator} {rest}."


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
