"""Encoding of records as the status of a ``TrainingJob``, exact to the microsecond.

``decoding`` is the inverse. The API server limits the size of an object, so the oldest attempts and
preemptions beyond a limit are left out, and texts are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from benchpool_scheduler import contract
from benchpool_scheduler.contract.changes import WRITTEN
from benchpool_scheduler.contract.kubernetes import ACCEPTED, JOB, PROJECT, USER
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS, JobState
from benchpool_scheduler.resources.declaring import Condition, ObjectMeta
from benchpool_scheduler.resources.jobs import (
    REFUSED,
    AcceptedSpec,
    AttemptStatus,
    PreemptionStatus,
    ReasonStatus,
    StopRequestStatus,
    TrainingJobStatus,
    WorkerStatus,
)
from benchpool_scheduler.resources.progress import MeasuredStatus, ProgressStatus
from benchpool_scheduler.resources.waiting import AwaitedStatus, EstimatedStartStatus, PlaceStatus
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.kubernetes import retry_status
from benchpool_scheduler.store.kubernetes.edits import EditRefused
from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobProgress,
    JobRecord,
    Note,
    PreemptionRecord,
    StopIntent,
    WorkerRecord,
)

MOST_WORKERS = 2_000
"""Maximum number of stored workers of earlier attempts."""
MOST = 100
TEXT, SHORT = 4096, 500


class WaitReport(Struct, frozen=True):
    """Published report of a waiting job, which is computed again after a restart.

    Attributes:
        reason: Why it waits. The times are those of its estimated start, seconds since the epoch.
    """

    reason: Note | None = None
    earliest: float | None = None
    likely: float | None = None
    latest: float | None = None
    over_quota: bool = False


def wait_report_of(job: contract.Job) -> WaitReport:
    """Return the report of a job's waiting from its public form."""
    reason, start = job.reason, job.estimated_start
    return WaitReport(
        None if reason is None else Note(reason.code, reason.text, reason.remedy, reason.numbers),
        None if start is None else seconds(start.earliest),
        None if start is None else seconds(start.likely),
        None if start is None else seconds(start.latest),
        job.over_quota,
    )


class StoredJob(Struct, frozen=True):
    """Job with all its attempts and preemptions."""

    job: JobRecord
    attempts: tuple[AttemptRecord, ...] = ()
    preemptions: tuple[PreemptionRecord, ...] = ()

    @property
    def newest(self) -> AttemptRecord | None:
        """Return the newest attempt, or None."""
        return self.attempts[-1] if self.attempts else None


def when(at: float | None) -> datetime | None:
    """Convert seconds since the epoch to a UTC time with microseconds; None stays None."""
    return None if at is None else moment(at)


def moment(at: float) -> datetime:
    """Convert seconds since the epoch to a UTC time with microseconds."""
    return datetime.fromtimestamp(round(at, 6), UTC)


def seconds(at: datetime | None) -> float | None:
    """Convert a time to seconds since the epoch; None stays None."""
    return None if at is None else at.timestamp()


# --------------------------------------------------------------------------- to a status


def as_status(
    stored: StoredJob,
    wait_report: WaitReport = WaitReport(),  # noqa: B008 (frozen)
    *,
    epoch: int = 0,
    revision: int = 0,
    generation: int = 0,
    suspend: bool = False,
    refused: EditRefused | None = None,
) -> TrainingJobStatus:
    """Return the status of a job; ``refused`` is the last edit that was put back."""
    job, newest = stored.job, stored.newest
    waits = job.state is JobState.QUEUED
    reason = wait_report.reason if waits and wait_report.reason is not None else job.note
    return TrainingJobStatus(
        id=job.id,
        state=job.state.value,
        reason=_reason(reason),
        estimated_start=_estimate(wait_report) if waits else None,
        user=job.user,
        project=job.project,
        over_quota=wait_report.over_quota,
        workers=0 if newest is None else len(newest.live_workers),
        selector=f"{JOB}={job.id}",
        attempt=job.attempt,
        submitted=when(job.submitted),
        queued_since=when(job.queued_since),
        started=when(job.started),
        ended=when(job.ended),
        exit_code=job.exit_code,
        stop_request=_stop_request(job.stop_request),
        note=_reason(job.note),
        promised=tuple(PlaceStatus(it.node, it.gpus) for it in job.promised),
        awaits=tuple(_awaited(it) for it in job.awaits),
        freed=when(job.freed),
        late_since=when(job.late_since),
        progress=_progress(job.progress),
        measured=None if job.measured is None else MeasuredStatus(**asdict(job.measured)),
        attempts=tuple(_attempt(it) for it in newest_attempts(stored.attempts)),
        preemptions=tuple(_preemption(it) for it in stored.preemptions[-MOST:]),
        retried=tuple(retry_status.retry(it) for it in job.retried),
        remark=job.remark,
        conditions=(
            *conditions(stored, reason, generation),
            *(() if refused is None else (_edit_refused(refused, generation),)),
        ),
        accepted_gpus=job.spec.gpus,
        accepted_workers=job.spec.workers,
        accepted=AcceptedSpec(**{name: getattr(job.spec, name) for name in WRITTEN}),
        accepted_least=job.spec.least_workers,
        suspend=suspend,
        observed_generation=generation,
        epoch=epoch,
        revision=revision,
    )


def newest_attempts(attempts: Sequence[AttemptRecord]) -> tuple[AttemptRecord, ...]:
    """Return the newest attempt and as many earlier ones as the limits allow."""
    kept: list[AttemptRecord] = []
    workers = 0
    for number, attempt in enumerate(reversed(attempts)):
        workers += len(attempt.workers) if number else 0
        if workers > MOST_WORKERS or number == MOST:
            break
        kept.append(attempt)
    return tuple(reversed(kept))


def without_history(stored: StoredJob) -> StoredJob:
    """Return a job with its newest attempt only."""
    return StoredJob(stored.job, stored.attempts[-1:])


def conditions(stored: StoredJob, reason: Note | None, generation: int) -> tuple[Condition, ...]:
    """Return the standard conditions, each with its transition time.

    As with Kubernetes' own Jobs, a condition is absent before it first applies: ``Running`` appears
    with the first attempt, ``Complete`` with the end. One of them carries the sentence.
    """
    job, newest = stored.job, stored.newest
    holds = job.state in HOLDS_GPUS and newest is not None
    ended_last = newest.ended if newest is not None else None
    why = _word(reason.code) if reason is not None else _word(job.state.value)
    text = _clip(reason.text, TEXT) if reason is not None else ""

    def condition(name: str, holds: bool, since: float | None, why: str, text: str) -> Condition:
        status: Literal["True", "False"] = "True" if holds else "False"
        at = _rfc3339(job.submitted if since is None else since)
        return Condition(name, status, why, text, at, generation)

    found = [condition("Accepted", True, job.submitted, "Checked", "")]
    if holds and newest is not None:
        found.append(condition("Admitted", True, newest.decided, "Placed", ""))
    else:
        message = text if job.ended is None else ""
        found.append(condition("Admitted", False, ended_last, why, message))
    if holds and newest is not None and newest.started is not None:
        found.append(condition("Running", True, newest.started, "AllWorkersRun", ""))
    elif newest is not None:
        found.append(condition("Running", False, ended_last, why, ""))
    if job.ended is not None:
        found.append(condition("Complete", True, job.ended, _word(job.state.value), text))
    return tuple(found)


def refusal(note: Note, since: float, generation: int) -> TrainingJobStatus:
    """Return the status of a refused job."""
    at = _rfc3339(since)
    condition = Condition(
        "Accepted", "False", _word(note.code), _clip(note.text, TEXT), at, generation
    )
    return TrainingJobStatus(
        state=REFUSED,
        reason=_reason(note),
        conditions=(condition,),
        observed_generation=generation,
    )


def _edit_refused(it: EditRefused, generation: int) -> Condition:
    text, at = _clip(it.text, TEXT), _rfc3339(it.at)
    return Condition("EditRefused", "True", "AcceptedBefore", text, at, generation)


def _word(code: str) -> str:
    """Return a code in the spelling of condition reasons.

    >>> _word("fair-share-reached")
    'FairShareReached'
    """
    return "".join(part.capitalize() for part in code.split("-")) or "None"


def _rfc3339(at: float) -> str:
    return moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _reason(note: Note | None) -> ReasonStatus | None:
    if note is None:
        return None
    return ReasonStatus(
        note.code, _clip(note.text, TEXT), dict(note.numbers), _clip(note.remedy, TEXT)
    )


def _estimate(report: WaitReport) -> EstimatedStartStatus | None:
    if report.earliest is None and report.likely is None and report.latest is None:
        return None
    return EstimatedStartStatus(when(report.earliest), when(report.likely), when(report.latest))


def _stop_request(stop: StopIntent | None) -> StopRequestStatus | None:
    if stop is None:
        return None
    return StopRequestStatus(
        kind=stop.kind.value,
        at=moment(stop.at),
        grace_s=stop.grace_s,
        by=stop.by,
        for_=_clip(stop.for_, SHORT),
        text=_clip(stop.text, TEXT),
        claimant=stop.claimant,
        held=stop.held,
        early=stop.early,
    )


def _awaited(it: Awaited) -> AwaitedStatus:
    outcome = None if it.outcome is None else contract.State(it.outcome.value)
    return AwaitedStatus(it.job, _clip(it.name, 200), outcome, it.tasks)


def _progress(it: JobProgress | None) -> ProgressStatus | None:
    if it is None:
        return None
    text = None if it.text is None else _clip(it.text, TEXT)
    saved = (when(it.checkpoint_at), it.saved, it.step)
    first = (None, None) if it.since is None else (moment(it.since[0]), it.since[1])
    rest = (it.attempt, it.before, *first, it.runs)
    return ProgressStatus(moment(it.at), it.fraction, text, *saved, *rest)


def _attempt(it: AttemptRecord) -> AttemptStatus:
    return AttemptStatus(
        attempt=it.attempt,
        decided=moment(it.decided),
        workers=tuple(_worker(worker) for worker in it.workers),
        started=when(it.started),
        ended=when(it.ended),
        exit_code=it.exit_code,
        ended_by=it.ended_by,
        port=it.port,
        cpus=it.cpus,
        memory_gib=it.memory_gib,
    )


def _worker(it: WorkerRecord) -> WorkerStatus:
    return WorkerStatus(
        index=it.index,
        node=it.node,
        gpus=it.gpus,
        started=when(it.started),
        ended=when(it.ended),
        exit_code=it.exit_code,
        ended_by=it.ended_by,
        text=None if it.text is None else _clip(it.text, TEXT),
        leaving=it.leaving,
        failure=retry_status.failure(it.failure),
    )


def _preemption(it: PreemptionRecord) -> PreemptionStatus:
    return PreemptionStatus(
        attempt=it.attempt,
        at=moment(it.at),
        for_=_clip(it.for_, SHORT),
        rule=it.rule,
        lost_gpu_s=it.lost_gpu_s,
        gpus=it.gpus,
        claimant=it.claimant,
        resumed_at=when(it.resumed_at),
        resumed_on=None if it.resumed_on is None else _clip(it.resumed_on, TEXT),
        needs=it.needs,
        by=it.by,
        said=_clip(it.said, SHORT),
        ended=when(it.ended),
        saved_at=when(it.saved_at),
        saved_step=it.saved_step,
        saved=it.saved,
        unsaved_gpu_s=it.unsaved_gpu_s,
        restart_gpu_s=it.restart_gpu_s,
    )


def metadata_of(job: JobRecord) -> ObjectMeta:
    """Return the metadata of the object of a job that was submitted through the API."""
    return ObjectMeta(
        job.id,
        labels={JOB: job.id},
        annotations={
            USER: job.user,
            PROJECT: job.project,
            ACCEPTED: moment(job.submitted).isoformat(),
        },
    )


def is_plain(stored: StoredJob) -> bool:
    """Return whether an object without a status describes the same job."""
    job = stored.job
    return (
        job.state is JobState.QUEUED
        and not stored.attempts
        and job.note is None
        and job.queued_since == job.submitted
        and not job.awaits
    )


def wait_report_in(status: TrainingJobStatus) -> WaitReport:
    """Return the report in a status, so that a restart does not publish it again."""
    reason, start = status.reason, status.estimated_start
    if reason is None or reason == status.note:
        return WaitReport(over_quota=status.over_quota)
    return WaitReport(
        Note(reason.code, reason.text, reason.remedy, reason.numbers),
        None if start is None else seconds(start.earliest),
        None if start is None else seconds(start.likely),
        None if start is None else seconds(start.latest),
        status.over_quota,
    )


def is_news(before: WaitReport, now: WaitReport) -> bool:
    """Return whether a report differs in more than its numbers.

    An estimate that is unknown after a restart is no news, as it is computed again soon.
    """
    learned = before.likely is None and now.likely is not None
    return learned or _gist(before) != _gist(now)


def _gist(report: WaitReport) -> tuple[object, ...]:
    return None if report.reason is None else report.reason.code, report.over_quota
