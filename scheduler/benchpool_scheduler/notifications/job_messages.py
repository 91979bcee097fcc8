"""Messages about a job for its owner, derived from the job's record alone.

No message depends on the change between two records. So a scheduler that was down at the time
derives the same messages with the same IDs.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.notifications.delivery_state import Subscription
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.phrases import duration
from benchpool_scheduler.store.records import JobRecord, PreemptionRecord

FRESH_S = 24 * 3600.0
"""Age after which a message is not sent any more, in seconds."""


def of_job(
    job: JobRecord, pause: PreemptionRecord | None, subscription: Subscription, now: float
) -> Iterator[Message]:
    """Yield the messages about a job for its owner that are due.

    Args:
        pause: The newest pause of the job.
    """
    oldest = oldest_sent(subscription, now)
    for message in _all(job, pause, subscription, now):
        if message.event in subscription.events and message.at >= oldest:
            yield message


def oldest_sent(subscription: Subscription, now: float) -> float:
    """Return the time before which events are not sent, in epoch seconds.

    A subscription time in the future, from before the clock was set back, is ignored.

    >>> [oldest_sent(Subscription("susan", since, ()), 1e6) for since in (9e5, 95e4, 2e6)]
    [913600.0, 950000.0, 913600.0]
    """
    fresh = now - FRESH_S
    return fresh if subscription.since > now else max(subscription.since, fresh)


def waits_for_time(job: JobRecord) -> bool:
    """Return whether time alone may cause a message: the job has run, and is paused or queued."""
    return job.live and job.attempt > 0 and job.state in (JobState.PAUSED, JobState.QUEUED)


def _all(
    job: JobRecord, pause: PreemptionRecord | None, subscription: Subscription, now: float
) -> Iterator[Message]:
    if job.started is not None and job.started - job.in_line_since >= subscription.wait_s:
        waited = duration(job.started - job.in_line_since)
        text = f"{_named(job)} started after {waited} in the queue."
        yield _message(job, f"{job.id}-started", NotificationEvent.STARTED, job.started, text)
    if waits_for_time(job) and pause is not None and not _by_owner(job, pause):
        since = pause.at if pause.ended is None else pause.ended
        if pause.resumed_at is None and now - since >= subscription.paused_s:
            yield _message(
                job,
                f"{job.id}-{pause.attempt}-paused",
                NotificationEvent.PAUSED,
                since + subscription.paused_s,
                f"{_named(job)} has been paused for more than {duration(subscription.paused_s)}"
                f"{_by(pause)}.",
            )
    if job.note is not None and job.note.code == ReasonCode.HANGING:
        since, at = (float(job.note.numbers[name] or 0) for name in ("since", "at"))
        id_ = f"{job.id}-{job.attempt}-hanging-{int(since)}"
        text = f"{_named(job)} hangs. {job.note.text}"
        yield _message(job, id_, NotificationEvent.HANGING, at, text)
    if job.late_since is not None and job.live:
        yield _late(job, job.late_since)
    if job.ended is not None:
        yield from _end(job, job.ended)


def _late(job: JobRecord, since: float) -> Message:
    deadline = job.spec.deadline
    over = deadline is not None and since > deadline.timestamp()
    outcome = "did not end by its deadline" if over else "is expected to miss its deadline"
    text = f"{_named(job)} {outcome}."
    id_ = f"{job.id}-deadline-{int(since)}"
    return _message(job, id_, NotificationEvent.DEADLINE, since, text)


def _end(job: JobRecord, ended: float) -> Iterator[Message]:
    note = "" if job.note is None else f" {job.note.text}"
    if job.state is JobState.SUCCEEDED:
        ran = "" if job.started is None else f", {duration(ended - job.started)} after its start"
        text = f"{_named(job)} succeeded{ran}."
        yield _message(job, f"{job.id}-ended", NotificationEvent.ENDED, ended, text)
    elif job.state is JobState.FAILED:
        text = f"{_named(job)} failed.{note}"
        yield _message(job, f"{job.id}-failed", NotificationEvent.FAILED, ended, text)
    elif job.note is not None and job.note.code == ReasonCode.DEPENDENCY_FAILED:
        text = f"{_named(job)} was not run: {job.note.text.removeprefix('Not run: ')}"
        yield _message(job, f"{job.id}-failed", NotificationEvent.FAILED, ended, text)
    elif job.note is not None and job.note.code == ReasonCode.STOPPED_EARLY:
        return  # its sweep does not need it any more
    elif job.note is not None and job.note.numbers.get("by") not in (None, job.user):
        text = f"{_named(job)} was cancelled.{note}"
        yield _message(job, f"{job.id}-ended", NotificationEvent.ENDED, ended, text)


def _by_owner(job: JobRecord, pause: PreemptionRecord) -> bool:
    """Return whether the owner wants the job paused, also if another user paused it first."""
    noted = job.note is not None and job.note.numbers.get("by") == job.user
    return pause.by == job.user or (job.state is JobState.PAUSED and noted)


def _by(pause: PreemptionRecord) -> str:
    if pause.by is not None:
        return f", by {pause.by}" + (f": {pause.said.rstrip('.')}" if pause.said else "")
    return f", to make room for {pause.for_}" if pause.for_ else ""


def _named(job: JobRecord) -> str:
    return f"Job {job.name} ({job.id[:8]})"


def _message(job: JobRecord, id_: str, event: NotificationEvent, at: float, text: str) -> Message:
    return Message(id_, event, at, text, f"jobs/{job.id}")
