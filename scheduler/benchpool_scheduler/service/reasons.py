"""Why a job is where it is, in the contract's words."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.core import model
from benchpool_scheduler.core.states import Intent, JobState
from benchpool_scheduler.store.records import JobRecord, Note

NEXT_PASS = contract.Reason(
    code="next-pass",
    text="It has just come into the queue; the pass that decides about it begins at once.",
    numbers={},
    remedy="Nothing to do.",
)
"""The reason of a job between its arrival and the first pass that sees it."""


def from_core(reason: model.Reason) -> contract.Reason:
    """Return the core's reason for a waiting job (R22)."""
    return contract.Reason(
        code=str(reason.code),
        text=reason.text,
        numbers=dict(reason.numbers),
        remedy=reason.remedy,
    )


def of_job(job: JobRecord, decided: model.Reason | None) -> contract.Reason | None:
    """Return a job's reason: why it waits, leaves, is paused or failed; None when it just runs."""
    if job.state is JobState.QUEUED:
        return NEXT_PASS if decided is None else from_core(decided)
    if job.wish is not None:
        return _leaving(job)
    return None if job.note is None else _from_note(job.note)


def _leaving(job: JobRecord) -> contract.Reason | None:
    wish = job.wish
    if wish is None:
        return None
    code, remedy = {
        Intent.PREEMPT: ("preempted", "Nothing to do: it resumes by itself."),
        Intent.PAUSE: ("pausing-for-user", "Resume it to let it go on."),
        Intent.CANCEL: ("cancelling", "Nothing to do."),
    }[wish.kind]
    return contract.Reason(
        code=code, text=wish.text, numbers={"grace_s": wish.grace_s}, remedy=remedy
    )


def _from_note(note: Note) -> contract.Reason:
    return contract.Reason(
        code=note.code, text=note.text, numbers=dict(note.numbers), remedy=note.remedy
    )
