"""Description of a job in its worker's folder, from which an unknown job can be adopted."""

from __future__ import annotations

import msgspec

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.store.records import AttemptRecord, JobRecord


class StartNote(msgspec.Struct, frozen=True):
    """A job at the start of one of its attempts, with its submission."""

    job: JobRecord
    attempt: AttemptRecord
    submission: JobSubmission


def encode(job: JobRecord, attempt: AttemptRecord, submission: JobSubmission) -> bytes:
    """Return the note for the attempt's folder."""
    return msgspec.json.encode(StartNote(job, attempt, submission))


def decode(note: bytes) -> StartNote | None:
    """Return the decoded note, or None if it is missing or unreadable."""
    try:
        return msgspec.json.decode(note, type=StartNote)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
