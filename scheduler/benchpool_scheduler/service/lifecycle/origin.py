"""What a worker's folder says of its job: enough to take it in where the database knows nothing."""

from __future__ import annotations

import msgspec

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.store.records import AttemptRecord, JobRecord


class StartNote(msgspec.Struct, frozen=True):
    """A job as it was when an attempt of it was started, and what was submitted."""

    job: JobRecord
    attempt: AttemptRecord
    submission: JobSubmission


def encode(job: JobRecord, attempt: AttemptRecord, submission: JobSubmission) -> bytes:
    """Return the note for the attempt's folder."""
    return msgspec.json.encode(StartNote(job, attempt, submission))


def decode(note: bytes) -> StartNote | None:
    """Return what a note says; None where there is none that can be read."""
    try:
        return msgspec.json.decode(note, type=StartNote)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
