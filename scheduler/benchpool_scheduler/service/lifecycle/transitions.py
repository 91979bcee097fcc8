"""Transitions of jobs, as changes in a unit of work: the shell of the state machine.

No code here waits or acts. Each function takes a ``UnitOfWork``, reads the job from it, lets
``core.lifecycle.machine`` decide the next state, and leaves changes, launches and stops in the unit
of work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.contract.changes import ROWS
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle import machine, states
from benchpool_scheduler.core.lifecycle.retries import RetryRules, RetryVerdict
from benchpool_scheduler.core.lifecycle.states import JobState, Outcome
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.runtime import WorkerEnded, WorkerId, WorkerStarted
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.lifecycle import endings, hanging, notices, pauses, retrying
from benchpool_scheduler.service.lifecycle.job_actions import workers_are_fixed
from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobRecord,
    Place,
    PreemptionRecord,
    StopIntent,
    WorkerRecord,
)

# --------------------------------------------------------------------------- starts


def start(
    work: UnitOfWork,
    job_id: str,
    places: Sequence[Place],
    port: int,
    given: JobSpec,
    now: float,
) -> None:
    """Begin the next attempt of a queued job at these places.

    Args:
        given: The spec of its workers with the pool's default amounts. The attempt keeps them,
            since the defaults may change while it runs.
    """
    job = work.job(job_id)
    state = machine.apply(job.state, states.StartChosen())
    number = job.attempt + 1
    workers = tuple(
        WorkerRecord(index=index, node=place.node, gpus=place.gpus)
        for index, place in enumerate(places)
    )
    work.save_attempt(
        AttemptRecord(
            job=job.id,
            attempt=number,
            decided=now,
            workers=workers,
            port=port,
            cpus=given.cpus,
            memory_gib=given.memory_gib,
        )
    )
    work.save_job(replace(job, state=state, attempt=number, note=None, promised=()))
    work.launches.extend(WorkerId(job.id, number, worker.index) for worker in workers)


def add_workers(work: UnitOfWork, job_id: str, places: Sequence[Place]) -> None:
    """Add workers to a running job (R10)."""
    job = work.job(job_id)
    attempt = work.attempt(job)
    if attempt is None or job.stop_request is not None:
        return
    first = len(attempt.workers)
    more = tuple(
        WorkerRecord(index=first + number, node=place.node, gpus=place.gpus)
        for number, place in enumerate(places)
    )
    work.save_attempt(replace(attempt, workers=attempt.workers + more))
    work.launches.extend(WorkerId(job.id, attempt.attempt, worker.index) for worker in more)


def promise(work: UnitOfWork, job_id: str, places: tuple[Place, ...]) -> None:
    """Reserve places that other jobs leave, for a start or growth; empty places lapse (R20)."""
    job = work.job(job_id)
    if job.promised != places:
        work.save_job(replace(job, promised=places))


# --------------------------------------------------------------------------- stops


def preempt(work: UnitOfWork, job_id: str, stop: StopIntent, preemption: PreemptionRecord) -> None:
    """Preempt a job, which is then queued again by itself (R15-R17)."""
    if work.job(job_id).stop_request is None:
        _intend(work, job_id, states.PreemptAsked(), stop)
        work.save_preemption(preemption)


def shrink(work: UnitOfWork, job_id: str, gone: frozenset[str], stop: StopIntent) -> None:
    """Stop the workers of a running job that hold these GPUs (R18)."""
    job = work.job(job_id)
    attempt = work.attempt(job)
    if attempt is None:
        return
    leaving = [w for w in attempt.live_workers if gone & set(w.gpus) and not w.leaving]
    for worker in leaving:
        attempt = _with_worker(attempt, replace(worker, leaving=True))
        _stop(work, job, worker, stop)
    work.save_attempt(attempt)


def scale(work: UnitOfWork, job_id: str, workers: int, stop: StopIntent) -> None:
    """Set a job's number of workers: more start when GPUs are free, surplus ones stop at once.

    Errors: Refused for a job that has ended, and for a gang that runs with all workers or none.
    """
    job = work.job(job_id)
    if job.spec.workers == workers:
        return
    _require(job, states.CancelAsked, "scaled")
    if workers_are_fixed(job):
        now = job.spec.workers
        whole = f"all of its {now} workers or none" if now > 1 else "its one worker"
        raise Refused(
            f"Job {job.id[:8]} ({job.name}) runs with {whole}; "
            f"pause it first, or send it with min_workers to let the number of workers change.",
            code="gang-is-rigid",
            numbers={"workers": now, "asked": workers},
        )
    work.save_job(replace(job, spec=job.spec.changed(workers=workers), promised=()))
    attempt = work.attempt(job)
    if job.state not in states.HOLDS_GPUS or attempt is None or job.stop_request is not None:
        return
    staying = [worker for worker in attempt.live_workers if not worker.leaving]
    gone = frozenset(gpu for worker in staying[workers:] for gpu in worker.gpus)
    if gone:
        shrink(work, job_id, gone, stop)


def prioritise(work: UnitOfWork, job_id: str, priority: int) -> None:
    """Set a job's priority inside its project (R11). Errors: Refused when it has ended."""
    job = work.job(job_id)
    if job.spec.priority == priority:
        return
    _require(job, states.CancelAsked, "given another priority")
    work.save_job(replace(job, spec=job.spec.changed(priority=priority)))


def reshape(work: UnitOfWork, job_id: str, wanted: Mapping[str, Any]) -> None:
    """Change the request or the project of a job that holds no GPUs.

    Errors: Refused for a job that has ended or holds GPUs.
    """
    job = work.job(job_id)
    project = wanted.get("project", job.project)
    spec = job.spec.changed(**{name: wanted[name] for name in wanted if name != "project"})
    if (spec, project) == (job.spec, job.project):
        return
    _require(job, states.CancelAsked, "changed")
    if job.state in states.HOLDS_GPUS:
        raise Refused(
            f"Job {job.id[:8]} ({job.name}) is {job.state}: its {_listed(wanted)} can change "
            f"while it waits; pause it first, change it, and resume it.",
            code="holds-gpus",
            field=next(iter(wanted)),
        )
    work.save_job(replace(job, spec=spec, project=project, promised=()))


def _listed(wanted: Mapping[str, Any]) -> str:
    return " and ".join(ROWS[name].noun for name in wanted)


def pause(work: UnitOfWork, job_id: str, stop: StopIntent, reason: str = "") -> None:
    """Pause a job for its user, or hold it for an administrator. Errors: Refused after its end.

    Args:
        reason: The reason that was given.
    """
    job = work.job(job_id)
    if job.state is JobState.PAUSED:
        if stop.held and not pauses.is_held(job):
            work.save_job(replace(job, note=notices.is_paused(stop)))
        return
    _require(job, states.PauseAsked, "paused")
    if job.state in states.HOLDS_GPUS:
        _intend(work, job_id, states.PauseAsked(), stop)
        before = work.job(job_id).stop_request
        if stop.held and before is not None and before.kind is states.Intent.PAUSE:
            # A pause that its owner has requested becomes a hold.
            held = replace(stop, kind=before.kind, at=before.at)
            work.save_job(replace(work.job(job_id), stop_request=held))
        pauses.asked_for(work, job, work.attempt(job), stop, reason)
        return
    state = machine.apply(job.state, states.PauseAsked())
    work.save_job(replace(job, state=state, note=notices.is_paused(stop), promised=()))


def resume(
    work: UnitOfWork, job_id: str, stop: StopIntent, now: float, *, lifts: bool = True
) -> None:
    """Resume a paused or pausing job. Errors: Refused when it has ended, or is held.

    Args:
        lifts: The caller may end an administrator's hold.
    """
    job = work.job(job_id)
    if pauses.is_held(job) and not lifts:
        raise pauses.stays_held(job)
    if job.state is JobState.PAUSING:
        _intend(work, job_id, states.ResumeAsked(), stop)
        return
    if not job.live:
        _require(job, states.ResumeAsked, "resumed")
    if machine.can(job.state, states.ResumeAsked):
        state = machine.apply(job.state, states.ResumeAsked())
        work.save_job(replace(job, state=state, note=None, queued_since=now))


def cancel(work: UnitOfWork, job_id: str, stop: StopIntent, now: float) -> None:
    """Cancel a job. Errors: Refused if it has ended in another way."""
    job = work.job(job_id)
    if job.state is JobState.CANCELLED:
        return
    _require(job, states.CancelAsked, "cancelled")
    if job.state in states.HOLDS_GPUS:
        _intend(work, job_id, states.CancelAsked(), stop)
        return
    state = machine.apply(job.state, states.CancelAsked())
    note = notices.was_cancelled(stop)
    work.save_job(replace(job, state=state, note=note, ended=now, promised=()))


def _require(job: JobRecord, event: type[states.Event], verb: str) -> None:
    if not machine.can(job.state, event):
        raise Refused(
            f"Job {job.id[:8]} ({job.name}) has ended ({job.state}) and cannot be {verb}. "
            "Send it again to run it.",
            code="job-ended",
            numbers={"state": str(job.state)},
        )


def _intend(work: UnitOfWork, job_id: str, event: states.Event, stop: StopIntent) -> None:
    """Send a stop to a job that holds GPUs. An existing stop request is sent again."""
    job = work.job(job_id)
    before = None if job.stop_request is None else job.stop_request.kind
    after = machine.intend(before, event)
    state = machine.apply(job.state, event)
    if after is None:
        return
    if job.stop_request is None or after != before:
        stop = replace(stop, kind=after)
        work.save_job(replace(job, state=state, stop_request=stop))
    else:
        stop = job.stop_request
    attempt = work.attempt(job)
    for worker in attempt.live_workers if attempt is not None else ():
        _stop(work, job, worker, stop)


def _stop(work: UnitOfWork, job: JobRecord, worker: WorkerRecord, stop: StopIntent) -> None:
    work.stops.append((WorkerId(job.id, job.attempt, worker.index), notices.notice(stop)))


# --------------------------------------------------------------------------- workers


def worker_started(work: UnitOfWork, event: WorkerStarted) -> None:
    """Record that a worker runs. Once all workers run, the job is running."""
    found = _find(work, event.worker)
    if found is None:
        return
    job, attempt, worker = found
    if worker.started is None:
        attempt = _with_worker(attempt, replace(worker, started=event.at))
    if attempt.started is None and all(w.started is not None for w in attempt.workers):
        attempt = replace(attempt, started=event.at)
        if machine.can(job.state, states.Started):
            state = machine.apply(job.state, states.Started())
            first = event.at if job.started is None else job.started
            work.save_job(replace(job, state=state, started=first))
            pauses.resumed(work, job, attempt, event.at)
    work.save_attempt(attempt)


def worker_ended(
    work: UnitOfWork,
    event: WorkerEnded,
    grace_s: float,
    now: float,
    policy: RetryRules,
    xid: int | None = None,
) -> None:
    """Record that a worker has ended. With the last one the attempt ends.

    Args:
        policy: The site's retry rules. ``xid``: the driver's newest error of its GPUs.
    """
    found = _find(work, event.worker)
    if found is None or found[2].ended is not None:
        return
    job, attempt, worker = found
    ended = endings.ended(attempt, worker, hanging.with_cause(job, event), xid)
    attempt = _with_worker(attempt, ended)
    work.save_attempt(attempt)
    if not attempt.live_workers:
        _attempt_over(work, job, attempt, event.at, now, policy)
    elif hanging.is_stopped(job):
        pass  # the other workers have their notice
    elif job.stop_request is None and winding_down(attempt) and endings.bad(ended):
        stop = notices.sibling_ended(ended, grace_s, now)
        for other in attempt.live_workers:
            _stop(work, job, other, stop)


def winding_down(attempt: AttemptRecord) -> bool:
    """Return whether a worker failed or was lost, so that the other workers were sent a stop."""
    return any(endings.bad(worker) for worker in attempt.workers)


def _attempt_over(
    work: UnitOfWork,
    job: JobRecord,
    attempt: AttemptRecord,
    at: float,
    now: float,
    policy: RetryRules,
) -> None:
    intent = None if job.stop_request is None else job.stop_request.kind
    outcome = endings.outcome(attempt)
    culprit = endings.culprit(attempt)
    attempt = replace(
        attempt,
        ended=at,
        exit_code=0 if culprit is None else culprit.exit_code,
        ended_by=endings.ended_by(intent, outcome, culprit),
    )
    work.save_attempt(attempt)
    decided = None
    if endings.stopped_unknown(job, attempt):
        outcome = Outcome.AGAIN
    elif intent is None and culprit is not None:
        decided = retrying.decide(job, work.attempts(job), culprit, policy)
        if outcome is Outcome.FAILED and decided.again:
            outcome = Outcome.AGAIN
    event = machine.all_gone(intent, outcome)
    state = machine.apply(job.state, event)
    pauses.ended(work, job, attempt, finished=state is JobState.SUCCEEDED)
    requeued = endings.requeue_note(job, attempt, culprit)
    job = replace(job, state=state, stop_request=None)
    if machine.is_over(state):
        note = endings.note(job, state, attempt, culprit, stop_before(work, job))
        note = retrying.with_verdict(note, job, culprit, decided)
        job = replace(job, ended=at, exit_code=attempt.exit_code, note=note)
    elif state is JobState.PAUSED:
        stop = stop_before(work, job)
        job = replace(job, note=None if stop is None else notices.is_paused(stop))
    else:
        job = replace(job, queued_since=now, note=requeued)
        if outcome is Outcome.AGAIN and culprit is not None and decided is not None:
            job = retrying.tried_again(job, culprit, decided, now)
        elif decided is not None and decided.verdict is RetryVerdict.PAUSED:
            state = machine.apply(job.state, states.PauseAsked())
            job = replace(job, state=state, note=retrying.lost_too_often(decided, culprit))
    work.save_job(job)


def stop_before(work: UnitOfWork, job: JobRecord) -> StopIntent | None:
    """Return the stop request of the job before the present change, or None."""
    return work.job(job.id).stop_request


def _find(
    work: UnitOfWork, worker: WorkerId
) -> tuple[JobRecord, AttemptRecord, WorkerRecord] | None:
    """Return the records to which an event refers, or None if they are over."""
    try:
        job = work.job(worker.job)
    except KeyError:
        return None
    attempt = work.attempt(job)
    if not job.live or attempt is None or attempt.attempt != worker.attempt:
        return None
    known = next((w for w in attempt.workers if w.index == worker.worker), None)
    return None if known is None else (job, attempt, known)


def _with_worker(attempt: AttemptRecord, worker: WorkerRecord) -> AttemptRecord:
    workers = tuple(worker if w.index == worker.index else w for w in attempt.workers)
    return replace(attempt, workers=workers)
