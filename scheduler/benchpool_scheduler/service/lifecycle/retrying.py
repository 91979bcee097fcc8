"""Retries of a job: translates records for the core's decision, and the decision into records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.core.lifecycle import retries
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.retries import (
    GPU_XIDS,
    AttemptEnd,
    Decision,
    PastRetry,
    RetryRules,
)
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service.lifecycle import endings, notices, retry_words
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, Note, WorkerRecord
from benchpool_scheduler.store.retries import FailureRecord, RetryRecord

BY_END: Mapping[str, EndCause] = MappingProxyType(
    {
        str(EndedBy.NOT_TAKEN): EndCause.NOT_TAKEN,
        str(EndedBy.MACHINE_FAULT): EndCause.MACHINE_FAULT,
        str(EndedBy.NO_ROOM): EndCause.NO_ROOM,
        str(EndedBy.OUT_OF_MEMORY): EndCause.OUT_OF_MEMORY,
        str(EndedBy.TIME_LIMIT): EndCause.TIME_LIMIT,
        str(EndedBy.COULD_NOT_START): EndCause.COULD_NOT_START,
    }
)
"""Ends with exactly one cause, regardless of other facts."""


def cause_of(worker: WorkerRecord) -> EndCause:
    """Return the cause of the end of a worker that failed or was lost."""
    known = worker.failure or FailureRecord()
    if worker.ended_by == EndedBy.LOST:
        return EndCause.EVICTED if known.cause is EndCause.EVICTED else EndCause.NODE_LOST
    by_end = BY_END.get(worker.ended_by or "")
    if by_end is not None:
        return by_end
    if known.xid in GPU_XIDS:
        return EndCause.GPU_ERROR
    return known.cause if known.cause in retries.FAILURES else EndCause.EXIT_CODE


def decide(
    job: JobRecord, attempts: Sequence[AttemptRecord], worker: WorkerRecord, policy: RetryRules
) -> Decision:
    """Return what happens next to a job that ended without a stop request.

    Args:
        attempts: Its attempts, the ended one last. ``worker``: the worker that decided its end.
    """
    cause = cause_of(worker)
    fault = cause is EndCause.MACHINE_FAULT
    in_a_row = (endings.faults_in_a_row if fault else endings.lost_in_a_row)(attempts)
    end = AttemptEnd(cause, (worker.failure or FailureRecord()).traceback, in_a_row)
    past = tuple(PastRetry(it.cause, it.traceback) for it in job.retried)
    return retries.decide(end, past, job.spec, policy)


def tried_again(job: JobRecord, worker: WorkerRecord, decided: Decision, now: float) -> JobRecord:
    """Return a job that is queued again after a failure, with the retry recorded."""
    saved, known = job.progress, worker.failure or FailureRecord()
    retry = RetryRecord(
        attempt=job.attempt,
        cause=cause_of(worker),
        at=now,
        node=worker.node,
        pause_s=decided.rule.pause_s,
        avoid_s=decided.rule.avoid_s,
        xid=known.xid if known.xid in GPU_XIDS else None,
        exit_code=worker.exit_code,
        traceback=known.traceback,
        step=None if saved is None else saved.step,
        saved=saved is not None and saved.checkpoint_at is not None,
    )
    note = Note(ReasonCode.TRIES_AGAIN, retry_words.waits(retry))
    return replace(job, retried=(*job.retried, retry), note=note)


def with_verdict(
    note: Note | None, job: JobRecord, worker: WorkerRecord | None, decided: Decision | None
) -> Note | None:
    """Return the note of a failed job, with the reason against a retry if there is one."""
    if note is None or worker is None or decided is None:
        return note
    named = bool(job.spec.retry_on)
    why = retry_words.why_not(decided.verdict, cause_of(worker), decided.number, named)
    return replace(note, text=f"{note.text} {why}") if why else note


def lost_too_often(decided: Decision, worker: WorkerRecord | None) -> Note:
    """Return why a job was paused after repeated losses."""
    limit = decided.rule.in_a_row or 0
    return notices.lost_repeatedly(decided.number, limit, endings.SOON_S, worker)
