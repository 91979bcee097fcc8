"""Decoding of the status of a ``TrainingJob`` into records, the inverse of ``encoding``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from benchpool_scheduler.contract import JobMeasurements, JobSpec
from benchpool_scheduler.contract.changes import WRITTEN
from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.resources.jobs import (
    AttemptStatus,
    PreemptionStatus,
    ReasonStatus,
    SpecRequests,
    StopRequestStatus,
    TrainingJobSpec,
    TrainingJobStatus,
    WorkerStatus,
)
from benchpool_scheduler.resources.progress import ProgressStatus
from benchpool_scheduler.resources.submissions import asked_in, parameters_of
from benchpool_scheduler.resources.waiting import AwaitedStatus
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.kubernetes import retry_status
from benchpool_scheduler.store.kubernetes.encoding import StoredJob, seconds
from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobProgress,
    JobRecord,
    Note,
    Place,
    PreemptionRecord,
    StopIntent,
    WorkerRecord,
)


def stored_job(
    id_: str, spec: TrainingJobSpec, status: TrainingJobStatus, created: float
) -> StoredJob:
    """Return the job of an accepted object.

    Args:
        created: When the object was created, for an object whose status is not yet written.
    """
    submitted = created if status.submitted is None else status.submitted.timestamp()
    queued = submitted if status.queued_since is None else status.queued_since.timestamp()
    job = JobRecord(
        id=id_,
        name=spec.name or id_,
        project=status.project or spec.project or "",
        user=status.user or spec.user or "",
        state=JobState.QUEUED if status.state is None else JobState(status.state),
        submitted=submitted,
        queued_since=queued,
        spec=asked_in(spec).changed(**_accepted(spec, status)),
        key=spec.key,
        attempt=status.attempt,
        started=seconds(status.started),
        ended=seconds(status.ended),
        exit_code=status.exit_code,
        stop_request=_read_stop_request(status.stop_request),
        note=_note(status.note),
        promised=tuple(Place(it.node, it.gpus) for it in status.promised),
        awaits=tuple(_read_awaited(it) for it in status.awaits),
        freed=seconds(status.freed),
        late_since=seconds(status.late_since),
        progress=_read_progress(status.progress),
        measured=None if status.measured is None else JobMeasurements(**asdict(status.measured)),
        retried=tuple(retry_status.read_retry(it) for it in status.retried),
        remark=status.remark,
        parameters=parameters_of(spec),
    )
    return StoredJob(
        job,
        tuple(_read_attempt(id_, it) for it in status.attempts),
        tuple(_read_preemption(id_, it) for it in status.preemptions),
    )


def requests_of(job: JobRecord) -> SpecRequests:
    """Return the requestable fields of a job's object with their accepted values."""
    return SpecRequests(**accepted_of(job.spec), name=job.name)


def accepted_of(spec: JobSpec) -> dict[str, Any]:
    """Return the changeable fields of a spec by name."""
    return {name: getattr(spec, name) for name in WRITTEN}


def _accepted(spec: TrainingJobSpec, status: TrainingJobStatus) -> dict[str, Any]:
    """Return the changeable fields as last accepted; later edits are only requests."""
    if status.accepted is not None:
        return asdict(status.accepted)
    # The fields of 0.1.0.
    workers, gpus = status.accepted_workers or spec.workers, status.accepted_gpus or spec.gpus
    return {"workers": workers, "gpus": gpus}


def _note(reason: ReasonStatus | None) -> Note | None:
    if reason is None:
        return None
    return Note(reason.code, reason.text, reason.remedy, reason.numbers)


def _read_awaited(it: AwaitedStatus) -> Awaited:
    outcome = None if it.outcome is None else JobState(it.outcome.value)
    return Awaited(it.job, it.name, outcome, it.tasks)


def _read_stop_request(stop: StopRequestStatus | None) -> StopIntent | None:
    if stop is None:
        return None
    return StopIntent(
        kind=Intent(stop.kind),
        at=stop.at.timestamp(),
        grace_s=stop.grace_s,
        by=stop.by,
        for_=stop.for_,
        text=stop.text,
        claimant=stop.claimant,
        held=stop.held,
        early=stop.early,
    )


def _read_progress(it: ProgressStatus | None) -> JobProgress | None:
    if it is None:
        return None
    saved = (seconds(it.checkpoint_at), it.saved, it.step)
    since = None
    if it.first_at is not None and it.first_fraction is not None:
        since = it.first_at.timestamp(), it.first_fraction
    return JobProgress(
        it.at.timestamp(), it.fraction, it.text, *saved, it.attempt, it.before, since, it.runs
    )


def _read_attempt(job: str, it: AttemptStatus) -> AttemptRecord:
    return AttemptRecord(
        job=job,
        attempt=it.attempt,
        decided=it.decided.timestamp(),
        workers=_read_workers(it.workers),
        started=seconds(it.started),
        ended=seconds(it.ended),
        exit_code=it.exit_code,
        ended_by=it.ended_by,
        port=it.port,
        cpus=it.cpus,
        memory_gib=it.memory_gib,
    )


def _read_workers(workers: Iterable[WorkerStatus]) -> tuple[WorkerRecord, ...]:
    return tuple(
        WorkerRecord(
            index=it.index,
            node=it.node,
            gpus=it.gpus,
            started=seconds(it.started),
            ended=seconds(it.ended),
            exit_code=it.exit_code,
            ended_by=it.ended_by,
            text=it.text,
            leaving=it.leaving,
            failure=retry_status.read_failure(it.failure),
        )
        for it in workers
    )


def _read_preemption(job: str, it: PreemptionStatus) -> PreemptionRecord:
    return PreemptionRecord(
        job=job,
        attempt=it.attempt,
        at=it.at.timestamp(),
        claimant=it.claimant,
        for_=it.for_,
        rule=it.rule,
        lost_gpu_s=it.lost_gpu_s,
        gpus=it.gpus,
        resumed_at=seconds(it.resumed_at),
        resumed_on=it.resumed_on,
        needs=it.needs,
        by=it.by,
        said=it.said,
        ended=seconds(it.ended),
        saved_at=seconds(it.saved_at),
        saved_step=it.saved_step,
        saved=it.saved,
        unsaved_gpu_s=it.unsaved_gpu_s,
        restart_gpu_s=it.restart_gpu_s,
    )
