"""SQL statements for each change; values are passed as parameters only."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from benchpool_scheduler.store.records import (
    AddJob,
    AddObject,
    Change,
    DropJob,
    DropLease,
    JobRecord,
    SaveAsked,
    SaveAttempt,
    SaveCalibration,
    SaveJob,
    SaveLease,
    SaveNodes,
    SavePreemption,
    SaveUse,
)


def _json(facts: msgspec.Struct) -> str:
    return msgspec.json.encode(facts).decode()


def _add_job(db: sqlite3.Connection, change: AddJob) -> None:
    job = change.job
    db.execute(
        "INSERT INTO jobs (id, user, key, facts, submission) VALUES (?, ?, ?, ?, ?)",
        (job.id, job.user, job.key, _json(job), change.submission),
    )
    db.executemany(
        "INSERT OR IGNORE INTO job_objects (job, sha256) VALUES (?, ?)",
        [(job.id, sha256) for sha256 in change.objects],
    )
    _note_end(db, job)


def _save_job(db: sqlite3.Connection, change: SaveJob) -> None:
    db.execute("UPDATE jobs SET facts = ? WHERE id = ?", (_json(change.job), change.job.id))
    _note_end(db, change.job)


def _note_end(db: sqlite3.Connection, job: JobRecord) -> None:
    if job.ended is not None:
        db.execute("INSERT OR REPLACE INTO ended_jobs (job, at) VALUES (?, ?)", (job.id, job.ended))


def _save_attempt(db: sqlite3.Connection, change: SaveAttempt) -> None:
    attempt = change.attempt
    db.execute(
        "INSERT INTO attempts (job, attempt, facts) VALUES (?, ?, ?) "
        "ON CONFLICT (job, attempt) DO UPDATE SET facts = excluded.facts",
        (attempt.job, attempt.attempt, _json(attempt)),
    )
    db.execute("DELETE FROM held_gpus WHERE job = ?", (attempt.job,))
    db.executemany(
        "INSERT INTO held_gpus (gpu, job) VALUES (?, ?)",
        [(gpu, attempt.job) for worker in attempt.live_workers for gpu in worker.gpus],
    )


def _save_asked(db: sqlite3.Connection, change: SaveAsked) -> None:
    """Do nothing: no other client writes here, and the job's record has the values."""


def _save_preemption(db: sqlite3.Connection, change: SavePreemption) -> None:
    it = change.preemption
    db.execute(
        "INSERT INTO preemptions (job, attempt, at, facts) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (job, attempt, at) DO UPDATE SET facts = excluded.facts",
        (it.job, it.attempt, it.at, _json(it)),
    )


def _save_lease(db: sqlite3.Connection, change: SaveLease) -> None:
    lease = change.lease
    db.execute(
        "INSERT INTO leases (id, user, server, spawn, facts) VALUES (?, ?, ?, ?, ?)",
        (lease.id, lease.user, lease.server, lease.spawn, _json(lease)),
    )
    db.executemany(
        "INSERT INTO held_gpus (gpu, lease) VALUES (?, ?)", [(g, lease.id) for g in lease.gpus]
    )


def _drop_lease(db: sqlite3.Connection, change: DropLease) -> None:
    db.execute("DELETE FROM leases WHERE id = ?", (change.id,))


def _drop_job(db: sqlite3.Connection, change: DropJob) -> None:
    db.execute("DELETE FROM jobs WHERE id = ?", (change.id,))


def _add_object(db: sqlite3.Connection, change: AddObject) -> None:
    db.execute(
        "INSERT INTO objects (sha256, user, size, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (sha256, user) DO UPDATE SET at = excluded.at",
        (change.sha256, change.user, change.size, change.at),
    )


def _save_use(db: sqlite3.Connection, change: SaveUse) -> None:
    db.execute("DELETE FROM past_use")
    db.executemany(
        "INSERT INTO past_use (project, user, gpu_s, at) VALUES (?, ?, ?, ?)",
        [(it.project, it.user, it.gpu_s, it.at) for it in change.use],
    )


def _save_calibration(db: sqlite3.Connection, change: SaveCalibration) -> None:
    db.execute("DELETE FROM start_calibration")
    db.executemany(
        "INSERT INTO start_calibration (kind, horizon, low, high, outcomes) VALUES (?, ?, ?, ?, ?)",
        [(it.kind, it.horizon, it.low, it.high, it.outcomes) for it in change.calibration],
    )


def _save_nodes(db: sqlite3.Connection, change: SaveNodes) -> None:
    db.execute("DELETE FROM nodes")
    db.executemany(
        "INSERT INTO nodes (name, facts) VALUES (?, ?)",
        [(it.name, msgspec.json.encode(it).decode()) for it in change.nodes],
    )


_APPLY: Mapping[type[Change], Callable[[sqlite3.Connection, Any], None]] = {
    AddJob: _add_job,
    SaveJob: _save_job,
    SaveAsked: _save_asked,
    SaveAttempt: _save_attempt,
    SavePreemption: _save_preemption,
    SaveLease: _save_lease,
    DropLease: _drop_lease,
    DropJob: _drop_job,
    AddObject: _add_object,
    SaveUse: _save_use,
    SaveCalibration: _save_calibration,
    SaveNodes: _save_nodes,
}


def apply(db: sqlite3.Connection, change: Change) -> None:
    """Apply one change in the open transaction. Errors: sqlite3.Error."""
    _APPLY[type(change)](db, change)
