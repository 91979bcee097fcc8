"""Reads all that the service keeps in memory; a record that is damaged costs only itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

import msgspec

from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobRecord,
    LeaseRecord,
    PreemptionRecord,
    StoredContents,
    Unreadable,
    UseRecord,
)

_Facts = TypeVar("_Facts", bound=msgspec.Struct)

PROGRESS_JOBS = 1000
"""Progress of reading is told each time that so many jobs have been read."""


def read(
    db: sqlite3.Connection, progress: Callable[[int, int], None] = lambda done, of: None
) -> StoredContents:
    """Read everything, oldest first.

    Args:
        progress: Told how many jobs of how many have been read.

    Errors: sqlite3.DatabaseError: the file itself is damaged.
    """
    reader = _Reader(db, progress)
    jobs = reader.rows("job", "SELECT id, {} FROM jobs ORDER BY number", JobRecord)
    attempts = reader.rows(
        "attempt", "SELECT job, {} FROM attempts ORDER BY job, attempt", AttemptRecord
    )
    preemptions = reader.rows(
        "preemption", "SELECT job, {} FROM preemptions ORDER BY at", PreemptionRecord
    )
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
    return StoredContents(
        jobs=tuple(job for job in jobs if job.id not in bad),
        attempts=tuple(it for it in attempts if it.job not in bad),
        preemptions=tuple(it for it in preemptions if it.job not in bad),
        leases=tuple(leases),
        use=tuple(
            UseRecord(*row) for row in db.execute("SELECT project, user, gpu_s, at FROM past_use")
        ),
        unreadable=tuple({(it.kind, it.id): it for it in unreadable}.values()),
    )


def _jobs_without(
    jobs: list[JobRecord], attempts: list[AttemptRecord], unreadable: list[Unreadable]
) -> frozenset[str]:
    """Return the jobs that cannot be told: they, or what runs of them, cannot be read."""
    found = {it.id for it in unreadable if it.kind == "job"}
    doubtful = {it.id for it in unreadable if it.kind == "attempt"}
    newest = {(it.job, it.attempt) for it in attempts if it.job in doubtful}
    found.update(
        job.id for job in jobs
        if job.id in doubtful and job.live and (job.id, job.attempt) not in newest
    )  # fmt: skip
    return frozenset(found)


class _Reader:
    """Reads tables of JSON documents; what cannot be decoded is listed instead."""

    def __init__(self, db: sqlite3.Connection, progress: Callable[[int, int], None]) -> None:
        self._db, self._progress = db, progress
        self._of = int(db.execute("SELECT COUNT(*) FROM jobs").fetchone()[0])
        self._file = str(db.execute("PRAGMA database_list").fetchone()[2])
        self.unreadable: list[Unreadable] = []

    def rows(self, kind: str, sql: str, type_: type[_Facts]) -> list[_Facts]:
        """Return the records of a table; ``{}`` in the query stands for the document."""
        decoder, found = msgspec.json.Decoder(type_), list[_Facts]()
        # As bytes: a text that is none is one record's fault, and not that of the whole query.
        for id_, facts in self._db.execute(sql.format("CAST(facts AS BLOB)")):
            try:
                found.append(decoder.decode(facts))
            except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
                self.unreadable.append(Unreadable(kind, str(id_), str(error)[:200], self._file))
            if kind == "job" and len(found) % PROGRESS_JOBS == 0:
                self._progress(len(found), self._of)
        return found
