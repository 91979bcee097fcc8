"""Jobs as table rows: running, waiting with reason, ended, and the reader's actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from benchpool_scheduler.contract import Attempt, Gpu, Job, State
from benchpool_scheduler.contract.actions import ActionReason
from benchpool_scheduler.contract.operation import declared
from benchpool_scheduler.contract.operations import JobActions
from benchpool_scheduler.phrases import (
    count,
    duration,
    gpus_of_job,
    left,
    ordinal,
    pause_words,
    percent,
    percent_done,
    start_sentence,
)
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.web.pool_view import gpu_places
from benchpool_scheduler.web.words import (
    ACTIVE_STATES,
    ENDED_STATES,
    Moment,
    moment,
    optional_moment,
)

ENDED_SHOWN = 10
SHOWN = 50
"""Maximum number of jobs in a table; the page of all jobs has the rest."""


_BUTTONS = tuple(one for one in declared(JobActions) if one.body is ActionReason)
"""Operations that need only a reason."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader of the page."""

    name: str
    admin: bool


@dataclass(frozen=True, slots=True)
class Action:
    """Button of a job: ``confirm`` is the loss to confirm, ``asks_reason`` why a reason is
    required.

    A button with either opens a form first.
    """

    verb: str
    label: str
    asks_reason: bool
    confirm: str


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job as the tables show it."""

    job: Job
    mine: bool
    size: str
    reason: str
    remedy: str
    estimate: str
    submitted: Moment
    started: Moment | None
    ended: Moment | None
    ran: str
    position: str
    gpus: str
    percent: int | None
    progress: str
    pause: str
    pause_until: Moment | None
    actions: tuple[Action, ...]

    @property
    def short_id(self) -> str:
        """Return the first eight characters of its ID, as in the command line."""
        return self.job.id[:8]


@dataclass(frozen=True, slots=True)
class JobsView:
    """Section of the queue; ``left_out`` counts waiting and running jobs beyond the limit."""

    waiting: tuple[JobRow, ...]
    running: tuple[JobRow, ...]
    paused: tuple[JobRow, ...]
    ended: tuple[JobRow, ...]
    left_out: int


def jobs_view(
    jobs: Sequence[Job],
    attempts: Mapping[str, Sequence[Attempt]],
    gpus: Sequence[Gpu],
    reader: Reader,
    now: datetime,
) -> JobsView:
    """Return a reader's jobs as tables, the queue in its order.

    ``attempts`` has the attempts of each started job, by job ID.
    """
    positions = queue_positions(jobs, reader)

    def rows(chosen: Iterable[Job]) -> tuple[JobRow, ...]:
        return tuple(
            job_row(job, attempts.get(job.id, ()), gpus, reader, now, positions.get(job.id, ""))
            for job in chosen
        )

    waiting = sorted((job for job in jobs if job.state is State.QUEUED), key=_turn)
    running = sorted((job for job in jobs if job.state in ACTIVE_STATES), key=_started)
    paused = sorted((job for job in jobs if job.state is State.PAUSED), key=_turn)
    ended = sorted((job for job in jobs if job.state in ENDED_STATES), key=_ended, reverse=True)
    return JobsView(
        waiting=rows(waiting[:SHOWN]),
        running=rows(running[:SHOWN]),
        paused=rows(paused[:SHOWN]),
        ended=rows(ended[:ENDED_SHOWN]),
        left_out=sum(max(0, len(table) - SHOWN) for table in (waiting, running, paused)),
    )


def reasons_of(jobs: Iterable[Job]) -> Mapping[str, int]:
    """Return the number of jobs for each reason code, the most frequent first."""
    return dict(Counter(job.reason.code for job in jobs if job.reason is not None).most_common())


def attempts_of(pool: Pool, caller: Caller, jobs: Sequence[Job]) -> Mapping[str, Sequence[Attempt]]:
    """Return the attempts of each started job, by job ID."""
    return {job.id: pool.jobs.attempts(caller, job.id) for job in jobs if job.attempt > 0}


def queue_positions(jobs: Sequence[Job], reader: Reader) -> Mapping[str, str]:
    """Return each waiting job's queue position in its project, by job ID.

    Readers without full access get the position among the jobs they see, with a note of that.
    """
    peers: dict[str, list[Job]] = {}
    for job in jobs:
        if job.state is State.QUEUED:
            peers.setdefault(job.project, []).append(job)
    whole = "" if reader.admin else " you see"
    return {
        job.id: f"{ordinal(place)} of {len(line)}{whole}" if len(line) > 1 else f"only one{whole}"
        for line in peers.values()
        for place, job in enumerate(sorted(line, key=_turn), start=1)
    }


def job_row(
    job: Job,
    attempts: Sequence[Attempt],
    gpus: Sequence[Gpu],
    reader: Reader,
    now: datetime,
    position: str = "",
) -> JobRow:
    """Return one job as a row; ``started`` is its last start, ``ran`` the sum of all attempts."""
    ran = run_time(attempts, now)
    since = attempts[-1].started if attempts else job.started
    fraction = None if job.progress is None else job.progress.fraction
    return JobRow(
        job=job,
        mine=job.user == reader.name,
        size=gpus_of_job(job.gpus, job.workers),
        reason="" if job.reason is None else job.reason.text,
        remedy="" if job.reason is None else job.reason.remedy,
        estimate=start_sentence(job.estimated_start, now),
        submitted=moment(job.submitted, now),
        started=optional_moment(since, now),
        ended=optional_moment(job.ended, now),
        ran=ran,
        position=position,
        gpus=gpu_places([gpu for gpu in gpus if gpu.job == job.id]),
        percent=None if fraction is None else percent_done(fraction),
        progress=_progress(job, now),
        pause=pause_words(replace(job.pause, until=None), now) if job.pause else "",
        pause_until=None if job.pause is None else optional_moment(job.pause.until, now),
        actions=actions(job, reader, ran),
    )


def _progress(job: Job, now: datetime) -> str:
    """Return the text beside the progress: its message, earlier progress, and time left."""
    if job.progress is None:
        return ""
    fell, ends = job.progress.previous_progress, job.progress.ends
    before = "" if fell is None else f"{percent(fell)} in an earlier attempt"
    rest = left(None if ends is None else (ends - now).total_seconds())
    return ", ".join(part for part in (job.progress.text or "", before, rest) if part)


def run_time(attempts: Sequence[Attempt], now: datetime) -> str:
    """Return the run time of all attempts together; empty if the job never ran."""
    runs = [
        ((attempt.ended or now) - attempt.started).total_seconds()
        for attempt in attempts
        if attempt.started is not None
    ]
    return duration(sum(runs)) if runs else ""


def actions(job: Job, reader: Reader, ran: str) -> tuple[Action, ...]:
    """Return the buttons of a job, according to its ``actions``.

    ``ran`` is its run time. An action on another user's job requires a short reason, which its
    owner sees.
    """
    foreign = job.user != reader.name
    return tuple(
        Action(one.name, one.form.label, foreign, _loss(job, ran) if one.name == "cancel" else "")
        for one in _BUTTONS
        if one.form is not None and one.name in job.actions
    )


def _loss(job: Job, ran: str) -> str:
    if job.started is None:
        return ""
    if job.state in ACTIVE_STATES and ran:
        return (
            f"It has run {ran} on {count(job.gpus * job.workers, 'GPU')}; "
            "unsaved progress is lost, and it does not resume."
        )
    return "It ends for good. Its progress cannot be resumed."


def _turn(job: Job) -> tuple[int, datetime, str]:
    return (-job.priority, job.submitted, job.id)


def _started(job: Job) -> tuple[datetime, str]:
    return (job.started or job.submitted, job.id)


def _ended(job: Job) -> tuple[datetime, str]:
    return (job.ended or job.submitted, job.id)
