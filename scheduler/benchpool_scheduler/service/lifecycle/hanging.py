"""Hanging jobs: a note reports the hang, and a job to be retried is stopped; pure functions.

The note of the running job is the only record of a hang. It is removed at a new start, at the job's
end, and at the next activity.
"""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.contract.hanging import IfHanging
from benchpool_scheduler.core.lifecycle import retries
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.retries import AttemptEnd, PastRetry, RetryRules
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.phrases import duration
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.lifecycle import notices, retry_words
from benchpool_scheduler.store.records import JobRecord, Note, StopIntent

STOPPED = "stopped"
"""Number in a note that is 1 if the job was sent a stop, else 0."""


def hangs(job: JobRecord) -> bool:
    """Return whether a running job was found to hang."""
    return (
        job.state is JobState.RUNNING
        and job.note is not None
        and job.note.code == ReasonCode.HANGING
    )


def is_stopped(job: JobRecord) -> bool:
    """Return whether a job was sent a stop because it hangs."""
    return hangs(job) and job.note is not None and bool(job.note.numbers.get(STOPPED))


def begin(
    work: UnitOfWork,
    job: JobRecord,
    since: float,
    now: float,
    act: IfHanging,
    policy: RetryRules,
    grace_s: float,
) -> None:
    """Record that a job hangs. Stop it if it is to be retried and the rules allow it.

    Args:
        since: Time of its last activity. ``policy``: the site's retry rules.
    """
    end = AttemptEnd(EndCause.HANGING, None)
    past = tuple(PastRetry(it.cause, it.traceback) for it in job.retried)
    decided = retries.decide(end, past, job.spec, policy)
    stops = act is IfHanging.REQUEUE and decided.again
    named = bool(job.spec.retry_on)
    why_not = (
        ""
        if act is not IfHanging.REQUEUE or stops
        else retry_words.why_not(decided.verdict, EndCause.HANGING, decided.number, named)
    )
    job = replace(job, note=note(job, since, now, stops=stops, why_not=why_not))
    work.save_job(job)
    stop, attempt = stop_of(job, grace_s), work.attempt(job)
    if stop is not None and attempt is not None:
        for worker in attempt.live_workers:
            who = WorkerId(job.id, job.attempt, worker.index)
            work.stops.append((who, notices.notice(stop)))


def note(job: JobRecord, since: float, now: float, *, stops: bool, why_not: str = "") -> Note:
    """Return the note of a hanging job.

    Args:
        why_not: Why it is not retried although that was requested.
    """
    silent = (
        f"It shows no activity (noticed after {duration(now - since)}): no progress, "
        "no output, no CPU time and no work on its GPUs."
    )
    peek = f"`benchpool peek --hanging {job.id[:8]}` shows the stacks of all workers."
    if stops:
        text, remedy = f"{silent} It is stopped and tried again.", peek
    else:
        text = f"{silent} {why_not}".rstrip()
        remedy = f"{peek} Pausing and resuming it starts it again from its checkpoint."
    numbers: dict[str, int | float | str | None] = {"since": since, "at": now, STOPPED: int(stops)}
    return Note(ReasonCode.HANGING, text, remedy, numbers)


def end(work: UnitOfWork, job: JobRecord) -> None:
    """Remove the note of a job that is active again, unless it was sent a stop."""
    if hangs(job) and not is_stopped(job):
        work.save_job(replace(job, note=None))


def stop_of(job: JobRecord, grace_s: float) -> StopIntent | None:
    """Return the stop of a hanging job, or None if it was not sent one."""
    if not is_stopped(job) or job.note is None:
        return None
    at = float(job.note.numbers["at"] or 0)
    return notices.hangs(at, grace_s)


def with_cause(job: JobRecord, event: WorkerEnded) -> WorkerEnded:
    """Return a worker's end with hanging as its cause, if the job was stopped because it hung."""
    if not is_stopped(job) or event.by is not EndedBy.NOTICE:
        return event
    return dataclasses.replace(event, cause=EndCause.HANGING, traceback=None)
