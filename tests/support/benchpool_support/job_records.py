"""Jobs and attempts as records, for tests of stores, and their later changes."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from benchpool_scheduler.contract import JobSubmission, ScriptEntry, SnapshotFile
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.kube import Connection
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.service.process.identifiers import new_job_id
from benchpool_scheduler.store.records import AddJob, AttemptRecord, JobRecord, WorkerRecord
from benchpool_support.asking import asking

T = 1_800_000_000.125
"""Time of the beginning, in seconds since the epoch."""


def job(**more: Any) -> JobRecord:
    """Return a waiting job that was accepted at ``T``."""
    facts: dict[str, Any] = {
        "id": new_job_id(),
        "name": "train",
        "project": "vision",
        "user": "susan",
        "state": JobState.QUEUED,
        "submitted": T,
        "queued_since": T,
    }
    return JobRecord(**asking(facts | more, min_workers=None))


def add(record: JobRecord, *files: SnapshotFile) -> AddJob:
    """Return the change that adds a job with these files of a script."""
    submission = JobSubmission(
        entry=ScriptEntry("train.py", ["--fast"]),
        project=record.project,
        gpus=record.spec.gpus,
        workers=record.spec.workers,
        key=record.key,
        files=list(files),
    )
    return AddJob(record, msgspec.json.encode(submission), tuple(it.sha256 for it in files))


def attempt(record: JobRecord, *gpus: str, **more: Any) -> AttemptRecord:
    """Return the newest attempt of a job: one worker on these GPUs."""
    workers = (WorkerRecord(0, "node-a", gpus),)
    return AttemptRecord(record.id, record.attempt, T + 1, **({"workers": workers} | more))


def started(record: JobRecord, *gpus: str) -> tuple[JobRecord, AttemptRecord]:
    """Return a job and its attempt at its next start, on these GPUs."""
    record = replace(record, state=JobState.STARTING, attempt=record.attempt + 1)
    return record, attempt(record, *gpus)


async def status_of(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    """Return the current status of a job's object in the API server."""
    found = await connection.get(TRAINING_JOBS.kind, name, namespace=namespace)
    status: dict[str, Any] = found.get("status", {})
    return status
