"""Costs of the pauses of a job, as changes in a unit of work.

A pause is recorded at its decision, with its expected cost. When the last worker has ended, the
loss is known: the time since the job's last save. When all workers run again, the restart cost is
known.
"""

from __future__ import annotations

from msgspec.structs import replace

from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobRecord,
    PreemptionRecord,
    StopIntent,
)


def asked_for(
    work: UnitOfWork,
    job: JobRecord,
    attempt: AttemptRecord | None,
    stop: StopIntent,
    reason: str,
) -> None:
    """Record that a user pauses a job that holds GPUs; ``reason`` is the user's reason."""
    if attempt is None or stop.by is None:
        return
    if any(it.attempt == job.attempt and it.ended is None for it in work.pauses(job.id)):
        return  # it was leaving already
    gpus = sum(len(worker.gpus) for worker in attempt.live_workers)
    begun = attempt.decided if attempt.started is None else attempt.started
    unsaved_s = max(0.0, stop.at - max(begun, _saved_at(job) or 0.0))
    work.save_preemption(
        PreemptionRecord(
            job=job.id,
            attempt=job.attempt,
            at=stop.at,
            claimant=None,
            for_=stop.for_,
            rule="",
            lost_gpu_s=unsaved_s * gpus,
            gpus=gpus,
            by=stop.by,
            said=reason,
        )
    )


def ended(work: UnitOfWork, job: JobRecord, attempt: AttemptRecord, *, finished: bool) -> None:
    """Measure the cost of the pauses of an ended attempt; ``finished``: the job is done."""
    saved_at = _saved_at(job)
    begun = attempt.decided if attempt.started is None else attempt.started
    saved_in_it = saved_at is not None and saved_at >= begun
    since = saved_at if saved_at is not None and saved_in_it else begun
    progress = job.progress
    for it in work.pauses(job.id):
        if it.attempt != attempt.attempt or it.ended is not None:
            continue
        unsaved_gpu_s = sum(
            max(0.0, worker.ended - since) * len(worker.gpus)
            for worker in attempt.workers
            if worker.ended is not None and worker.ended >= it.at
        )
        kept = replace(it, ended=attempt.ended, unsaved_gpu_s=0.0 if finished else unsaved_gpu_s)
        if saved_in_it and progress is not None:
            kept = replace(kept, saved_at=saved_at, saved_step=progress.step, saved=progress.saved)
        work.save_preemption(kept)


def resumed(work: UnitOfWork, job: JobRecord, attempt: AttemptRecord, at: float) -> None:
    """Record where and when a job resumed, and its restart cost, after the newest pause."""
    where = ", ".join(sorted({worker.node for worker in attempt.workers}))
    before = [it for it in work.pauses(job.id) if it.attempt < attempt.attempt]
    waiting = [it for it in before if it.resumed_at is None]
    for it in waiting:
        kept = replace(it, resumed_at=at, resumed_on=where)
        if it is before[-1] and it.ended is not None:
            gpus = sum(len(worker.gpus) for worker in attempt.workers)
            kept = replace(kept, restart_gpu_s=max(0.0, at - attempt.decided) * gpus)
        work.save_preemption(kept)


def _saved_at(job: JobRecord) -> float | None:
    return None if job.progress is None else job.progress.checkpoint_at


def is_held(job: JobRecord) -> bool:
    """Return whether an administrator paused a job or is pausing it.

    Its owner cannot resume it then.
    """
    if job.stop_request is not None:
        return job.stop_request.held
    held = ReasonCode.PAUSED_BY_ADMINISTRATOR
    return job.state is JobState.PAUSED and job.note is not None and job.note.code == held


def stays_held(job: JobRecord) -> Refused:
    """Return the error for resuming a job that an administrator paused."""
    by, text = "an administrator", ""
    if job.stop_request is not None:
        by, text = job.stop_request.by or by, job.stop_request.text
    elif job.note is not None:
        by, text = str(job.note.numbers.get("by") or by), job.note.text
    return Refused(
        f"Job {job.id[:8]} ({job.name}) is held by an administrator and cannot be resumed by its "
        f"owner: {text} Ask {by} to resume it.",
        code="held-by-administrator",
        numbers={"by": by},
    )
