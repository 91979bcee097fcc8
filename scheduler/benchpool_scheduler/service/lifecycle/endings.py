"""End of an attempt: one outcome and one end code from the ends of its workers."""

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
"""Time after the start within which the job itself may be the cause of a loss, in seconds."""


def ended(
    attempt: AttemptRecord, worker: WorkerRecord, event: WorkerEnded, xid: int | None
) -> WorkerRecord:
    """Return the record of a worker that has ended.

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
        # It may contain output of the user's program.
        text=None if event.text is None else visible(event.text),
        failure=None if known == FailureRecord() else known,
    )


def outcome_of_worker(worker: WorkerRecord) -> Outcome:
    """Return the outcome of one ended worker. A worker that left on request counts as OK."""
    if worker.leaving and worker.started is None:
        return Outcome.OK
    if worker.ended_by in LOST:
        return Outcome.LOST
    return Outcome.OK if worker.leaving or worker.exit_code == 0 else Outcome.FAILED


def never_joined(attempt: AttemptRecord, worker: WorkerRecord, by: str) -> bool:
    """Return whether a worker that was added to a running gang (R10) was lost before it began.

    The other workers continue as if it had never been added: they may end well by themselves.
    """
    return attempt.started is not None and worker.started is None and by in LOST


def bad(worker: WorkerRecord) -> bool:
    """Return whether the worker's end also ends its gang."""
    return worker.ended is not None and outcome_of_worker(worker) is not Outcome.OK


def outcome(attempt: AttemptRecord) -> Outcome:
    """Return the outcome of an attempt whose workers have all ended."""
    return machine.outcome_of(outcome_of_worker(worker) for worker in attempt.workers)


def culprit(attempt: AttemptRecord) -> WorkerRecord | None:
    """Return the worker that decided the outcome: a lost one, else the first to fail, or None."""
    ended = sorted((w for w in attempt.workers if bad(w)), key=lambda w: w.ended or 0.0)
    lost = [w for w in ended if w.ended_by in LOST]
    return next(iter(lost or ended), None)


def stopped_unknown(job: JobRecord, attempt: AttemptRecord) -> bool:
    """Return whether an attempt ended by a notice that this database has not recorded.

    This happens after a restore of an older backup of the database: the job was paused later. A
    recorded notice leaves a stop request, follows another worker's end, or has hanging as its
    cause.
    """
    ends = [worker for worker in attempt.workers if bad(worker)]
    causes = {None if it.failure is None else it.failure.cause for it in ends}
    return (
        bool(ends)
        and job.stop_request is None
        and all(it.ended_by == EndedBy.NOTICE for it in ends)
        and EndCause.HANGING not in causes
    )


def ended_by(intent: Intent | None, result: Outcome, worker: WorkerRecord | None) -> str:
    """Return the code of an attempt's end."""
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
    stop: StopIntent | None,
) -> Note | None:
    """Return the note of a job that has ended as ``state``, or None if it succeeded."""
    if state is JobState.CANCELLED:
        return notices.was_cancelled(stop)
    if state is not JobState.FAILED or worker is None:
        return None
    which = f"Worker {worker.index} of {job.name}" if len(attempt.workers) > 1 else job.name
    return notices.failed(which, worker, job.spec.time_limit_s)


def requeue_note(
    job: JobRecord, attempt: AttemptRecord, worker: WorkerRecord | None
) -> Note | None:
    """Return why a job was queued again after a loss or an unknown stop, or None.

    It is None after a preemption.
    """
    if stopped_unknown(job, attempt):
        return notices.stopped_unknown(attempt.attempt)
    if worker is None or worker.ended_by not in LOST:
        return None
    return notices.queued_again(attempt.attempt, worker)


def lost_in_a_row(attempts: Sequence[AttemptRecord]) -> int:
    """Return how many of the newest attempts were lost soon after their start.

    Attempts that never began because of their node count once per node: one faulty node proves
    nothing about the job, which avoids it for longer each time. Faults of a node
    (``faults_in_a_row``) and pods refused by a quota of the cluster are skipped.
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
    """Return how many of the newest attempts did not begin because of a fault of the node."""
    faults = (attempt.ended_by == EndedBy.MACHINE_FAULT for attempt in reversed(attempts))
    return sum(1 for _ in takewhile(bool, faults))
