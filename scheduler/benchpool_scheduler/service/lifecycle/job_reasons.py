"""Reason of a job's state, in the types of the API."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.core import model
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.lifecycle import notices
from benchpool_scheduler.store.records import JobRecord, Note


def from_core(reason: model.WaitReason, *, named: bool = False) -> contract.Reason:
    """Return the core's reason for a waiting job (R22).

    Args:
        named: The reader may see the other job to which the reason refers, if any.
    """
    text, numbers = reason.text, dict(reason.numbers)
    if named and reason.other is not None:
        text = reason.other.text
        numbers["reserved_for"] = reason.other.job
    return contract.Reason(
        code=str(reason.code),
        text=sentence(text),
        numbers=numbers,
        remedy=sentence(reason.remedy),
    )


def sentence(clause: str) -> str:
    """Return a clause of the core as a complete sentence.

    >>> sentence("waits for 2 GPUs: 1 of 6 is free")
    'Waits for 2 GPUs: 1 of 6 is free.'
    """
    return f"{clause[:1].upper()}{clause[1:].rstrip('.')}."


def of_job(
    job: JobRecord, decided: model.WaitReason | None, *, named: bool = False
) -> contract.Reason | None:
    """Return why a job waits, leaves, is paused or failed, or None for a job that just runs."""
    if job.state is JobState.QUEUED:
        return notices.NEXT_PASS if decided is None else from_core(decided, named=named)
    if job.stop_request is not None:
        return notices.leaving(job.stop_request)
    return None if job.note is None else _from_note(job.note)


def _from_note(note: Note) -> contract.Reason:
    return contract.Reason(
        code=note.code, text=note.text, numbers=dict(note.numbers), remedy=note.remedy
    )
