"""Loading of the records that the service keeps in memory; a damaged record affects only itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

import msgspec

from benchpool_scheduler.store.records import (
    AttemptRecord,
    CalibrationRecord,
    JobRecord,
    LeaseRecord,
    NodeRecord,
    PreemptionRecord,
    StoredContents,
    Unreadable,
    UseRecord,
)

_Facts = TypeVar("_Facts", bound=msgspec.Struct)

OLDER = "INSERT INTO temp.wanted SELECT job FROM ended_jobs WHERE at <= ?"
RECENT = """INSERT INTO temp.wanted
    SELECT id FROM jobs WHERE NOT EXISTS (SELECT 1 FROM ended_jobs WHERE job = id)
    UNION ALL SELECT job FROM ended_jobs WHERE at > ?"""
"""Query for the jobs to read; jobs without a recorded end count as recent."""

WANTED = "WHERE {} IN (SELECT job FROM temp.wanted)"
JOBS = "SELECT id, {{}}, number FROM jobs {} ORDER BY number"
ATTEMPTS = "SELECT job, {{}} FROM attempts {} ORDER BY job, attempt"
PREEMPTIONS = "SELECT job, {{}} FROM preemptions {} ORDER BY at"
CALIBRATION = "SELECT kind, horizon, low, high, outcomes FROM start_calibration"

PROGRESS_JOBS = 1000
"""Number of jobs between two progress reports."""


def recent_end(db: sqlite3.Connection, ended: int) -> float | None:
    """Return since when the last ``ended`` jobs have ended; None if there are no more than
    these.
    """
    sql = "SELECT at FROM ended_jobs ORDER BY at DESC LIMIT 1 OFFSET ?"
    row = db.execute(sql, (ended,)).fetchone()
    return None if row is None else float(row[0])


def read(
    db: sqlite3.Connection,
    progress: Callable[[int, int], None] = lambda done, of: None,
    *,
    after: float | None = None,
    until: float | None = None,
) -> StoredContents:
    """Read all records, oldest first.

    Args:
        progress: Called with the number of jobs read and their total.
        after: Only jobs that ended after that time, or have not. ``until``: only jobs that ended
            then or before, and no other records.

    Errors: sqlite3.DatabaseError when the file itself is damaged.
    """
    which = ""
    if after is not None or until is not None:
        which = WANTED
        _want(db, *((RECENT, after) if after is not None else (OLDER, until)))
    reader = _Reader(db, progress, which.format("id"))
    jobs = reader.rows("job", JOBS.format(which.format("id")), JobRecord)
    attempts = reader.rows("attempt", ATTEMPTS.format(which.format("job")), AttemptRecord)
    preemptions = reader.rows(
        "preemption", PREEMPTIONS.format(which.format("job")), PreemptionRecord
    )
    leases, nodes = [], []
    if until is None:
        nodes = reader.rows("node", "SELECT name, {} FROM nodes", NodeRecord)
        leases = reader.rows("lease", "SELECT id, {} FROM leases", LeaseRecord)
    bad = _jobs_without(jobs, attempts, reader.unreadable)
    held = "SELECT gpu FROM held_gpus WHERE {} = ? ORDER BY gpu"
    unreadable = [
        msgspec.structs.replace(it, kind="job" if it.id in bad else it.kind, gpus=tuple(
            row[0] for row in db.execute(held.format("lease" if it.kind == "lease" else "job"),
                                         (it.id,))
        ) if it.kind == "lease" or it.id in bad else ())
        for it in reader.unreadable
    ]  # fmt: skip
    numbered = [(n, job) for n, job in zip(reader.numbers, jobs, strict=True) if job.id not in bad]
    return StoredContents(
        jobs=tuple(job for _, job in numbered),
        numbers=tuple(number for number, _ in numbered),
        next_number=1 + int(db.execute("SELECT COALESCE(MAX(number), 0) FROM jobs").fetchone()[0]),
        older=after is not None,
        attempts=tuple(it for it in attempts if it.job not in bad),
        preemptions=tuple(it for it in preemptions if it.job not in bad),
        leases=tuple(leases),
        use=()
        if until is not None
        else tuple(
            UseRecord(*row) for row in db.execute("SELECT project, user, gpu_s, at FROM past_use")
        ),
        calibration=tuple(CalibrationRecord(*row) for row in db.execute(CALIBRATION)),
        nodes=tuple(nodes),
        unreadable=tuple({(it.kind, it.id): it for it in unreadable}.values()),
    )


def _want(db: sqlite3.Connection, which: str, bound: float | None) -> None:
    """Write the jobs to read into a temporary table, for fast lookups."""
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute("DROP TABLE IF EXISTS temp.wanted")
    db.execute("CREATE TEMP TABLE wanted (job TEXT PRIMARY KEY) WITHOUT ROWID")
    db.execute(which, (bound,))


def _jobs_without(
    jobs: list[JobRecord], attempts: list[AttemptRecord], unreadable: list[Unreadable]
) -> frozenset[str]:
    """Return the jobs to leave out: their record, or that of their running attempt, is
    unreadable.
    """
    found = {it.id for it in unreadable if it.kind == "job"}
    doubtful = {it.id for it in unreadable if it.kind == "attempt"}
    newest = {(it.job, it.attempt) for it in attempts if it.job in doubtful}
    found.update(
        job.id for job in jobs
        if job.id in doubtful and job.live and (job.id, job.attempt) not in newest
    )  # fmt: skip
    return frozenset(found)


class _Reader:
    """Reader of tables of JSON documents, which lists records that cannot be decoded."""

    def __init__(
        self,
        db: sqlite3.Connection,
        progress: Callable[[int, int], None],
        which: str,
    ) -> None:
        self._db, self._progress = db, progress
        count = f"SELECT COUNT(*) FROM jobs {which}"  # noqa: S608 (a condition of ours)
        self._of = int(db.execute(count).fetchone()[0])
        self.numbers: list[int] = []
        self._file = str(db.execute("PRAGMA database_list").fetchone()[2])
        self.unreadable: list[Unreadable] = []

    def rows(self, kind: str, sql: str, type_: type[_Facts]) -> list[_Facts]:
        """Return the records of a table; ``{}`` in the query stands for the document."""
        decoder, found = msgspec.json.Decoder(type_), list[_Facts]()
        # Read as bytes, so that invalid text fails one record instead of the whole query.
        for id_, facts, *number in self._db.execute(sql.format("CAST(facts AS BLOB)")):
            try:
                found.append(decoder.decode(facts))
                self.numbers += number
            except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
                self.unreadable.append(Unreadable(kind, str(id_), str(error)[:200], self._file))
            if kind == "job" and len(found) % PROGRESS_JOBS == 0:
                self._progress(len(found), self._of)
        return found
