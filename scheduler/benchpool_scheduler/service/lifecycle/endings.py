"""How an attempt ended: from what its workers did to one outcome and one word."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.core.lifecycle import machine
from benchpool_scheduler.core.lifecycle.states import Intent, JobState, Outcome
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.runtime import EndedBy, WorkerEnded
from benchpool_scheduler.service.lifecycle import notices
from benchpool_scheduler.service.lifecycle.notices import LOST
from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobRecord,
    Note,
    StopIntent,
    WorkerRecord,
)
from benchpool_scheduler.store.retries import FailureRecord

SOON_S = 60.0
"""An attempt that is lost within this time of its start may be the job's own doing."""


def ended(
    attempt: AttemptRecord, worker: WorkerRecord, event: WorkerEnded, xid: int | None
) -> WorkerRecord:
    """Return a worker that is gone.

    Args:
        xid: The driver's newest error of its GPUs.
    """
    known = FailureRecord(event.cause, event.traceback, xid)
    return replace(
        worker,
        leaving=worker.leaving or never_joined(attempt, worker, str(event.by)),
        ended=event.at,
        exit_code=event.exit_code,
        ended_by=str(event.by),
        # What a program printed may be in it.
        text=None if event.text is None else visible(event.text),
        failure=None if known == FailureRecord() else known,
    )


def outcome_of_worker(worker: WorkerRecord) -> Outcome:
    """Return how one ended worker counts; one that was let go counts as fine."""
    if worker.leaving and worker.started is None:
        return Outcome.OK
    if worker.ended_by in LOST:
        return Outcome.LOST
    return Outcome.OK if worker.leaving or worker.exit_code == 0 else Outcome.FAILED


def never_joined(attempt: AttemptRecord, worker: WorkerRecord, by: str) -> bool:
    """Tell whether a worker that was to join a running gang (R10) was lost before it began.

    The others go on as if it had never been asked for: they may have ended well by themselves.
    """
    return attempt.started is not None and worker.started is None and by in LOST


def bad(worker: WorkerRecord) -> bool:
    """Tell whether the worker ended in a way that ends its gang."""
    return worker.ended is not None and outcome_of_worker(worker) is not Outcome.OK


def outcome(attempt: AttemptRecord) -> Outcome:
    """Return the outcome of an attempt whose workers have all ended."""
    return machine.outcome_of(outcome_of_worker(worker) for worker in attempt.workers)


def culprit(attempt: AttemptRecord) -> WorkerRecord | None:
    """Return the worker whose end decided the outcome: a lost one, else the first that failed."""
    ended = sorted((w for w in attempt.workers if bad(w)), key=lambda w: w.ended or 0.0)
    lost = [w for w in ended if w.ended_by in LOST]
    return next(iter(lost or ended), None)


def stopped_unknown(job: JobRecord, attempt: AttemptRecord) -> bool:
    """Tell whether an attempt ended because its workers were told to stop, and not by us.

    So it is where an older copy of the database was put back: that the job was paused came later.
    A notice of ours leaves a wish, follows another worker's end, or has hanging as its cause.
    """
    ends = [worker for worker in attempt.workers if bad(worker)]
    causes = {None if it.failure is None else it.failure.cause for it in ends}
    return (
        bool(ends)
        and job.wish is None
        and all(it.ended_by == EndedBy.NOTICE for it in ends)
        and EndCause.HANGING not in causes
    )


def ended_by(intent: Intent | None, result: Outcome, worker: WorkerRecord | None) -> str:
    """Return the word of an attempt's end for people and programs."""
    if result is Outcome.OK or worker is None:
        return str(EndedBy.ITSELF)
    if intent is not None:
        return str(intent)
    return worker.ended_by or str(EndedBy.ITSELF)


def note(
    job: JobRecord,
    state: JobState,
    attempt: AttemptRecord,
    worker: WorkerRecord | None,
    wish: StopIntent | None,
) -> Note | None:
    """Return the sentence about a job that has ended as ``state``; None when it succeeded."""
    if state is JobState.CANCELLED:
        return notices.was_cancelled(wish)
    if state is not JobState.FAILED or worker is None:
        return None
    which = f"Worker {worker.index} of {job.name}" if len(attempt.workers) > 1 else job.name
    return notices.failed(which, worker, job.spec.time_limit_s)


def requeue_note(
    job: JobRecord, attempt: AttemptRecord, worker: WorkerRecord | None
) -> Note | None:
    """Return why a job queues again that was lost, or stopped unknown; None after a preemption."""
    if stopped_unknown(job, attempt):
        return notices.stopped_unknown(attempt.attempt)
    if worker is None or worker.ended_by not in LOST:
        return None
    return notices.queued_again(attempt.attempt, worker)


def lost_in_a_row(attempts: Sequence[AttemptRecord]) -> int:
    """Count the newest attempts that were lost soon after their start.

    Of those that never began because of their node each node counts once: one that is in trouble
    for a while says nothing of the job, which keeps off it for longer each time. Faults of a
    machine (``faults_in_a_row``), and what a quota of the cluster did not let in, are passed over.
    """
    count, nodes = 0, set[str]()
    for attempt in reversed(attempts):
        if attempt.ended_by in (EndedBy.MACHINE_FAULT, EndedBy.NO_ROOM):
            continue
        begun = attempt.started if attempt.started is not None else attempt.decided
        soon = attempt.ended is not None and attempt.ended - begun < SOON_S
        if attempt.ended_by == EndedBy.NOT_TAKEN:
            worker = culprit(attempt)
            nodes.add("" if worker is None else worker.node)
        elif attempt.ended_by == EndedBy.LOST and soon:
            count += 1
        else:
            break
    return count + len(nodes)


def faults_in_a_row(attempts: Sequence[AttemptRecord]) -> int:
    """Count the newest attempts that did not begin for a fault of the machine."""
    faults = (attempt.ended_by == EndedBy.MACHINE_FAULT for attempt in reversed(attempts))
    return sum(1 for _ in takewhile(bool, faults))
