"""One job: its facts, reason for waiting, attempts, and the cost of its pauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from benchpool_scheduler.contract import (
    Attempt,
    Gpu,
    Job,
    JobDetail,
    Preemption,
    State,
    twins,
)
from benchpool_scheduler.contract.actions import ActionReason
from benchpool_scheduler.contract.changes import ROWS, Advised, advised
from benchpool_scheduler.contract.forms import Field, fields, shown, titled
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.phrases import attempt_end, duration, kept_for, runs_after
from benchpool_scheduler.web.actions import FORMS
from benchpool_scheduler.web.job_rows import Action, JobRow, Reader, job_row
from benchpool_scheduler.web.pool_view import gpu_places
from benchpool_scheduler.web.words import (
    ACTIVE_STATES,
    ENDED_STATES,
    Moment,
    moment,
    optional_moment,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and its value; ``at`` instead of ``text`` if the value is a time.

    ``url``: external link of the text, as given by the job.
    """

    name: str
    text: str = ""
    at: Moment | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One start of the job and how it ended."""

    number: int
    started: Moment | None
    ended: Moment | None
    ran: str
    end: str
    places: str


@dataclass(frozen=True, slots=True)
class PauseRow:
    """One pause: its beneficiary and rule (R23), or the user who requested it, and its cost."""

    at: Moment
    why: str
    cost: str
    resumed: Moment | None


@dataclass(frozen=True, slots=True)
class FormField:
    """Input with the job's current value; ``fixed`` is why it cannot change, else empty."""

    field: Field
    label: str
    value: str
    fixed: str


@dataclass(frozen=True, slots=True)
class JobForm:
    """Action with input fields."""

    verb: str
    label: str
    fields: tuple[FormField, ...]

    @property
    def asked(self) -> dict[str, str]:
        """Return the current values of its fields, for the command that the page shows."""
        return {one.field.name: twins.FILLED for one in self.fields if not one.fixed}


@dataclass(frozen=True, slots=True)
class JobView:
    """The job's page without its log."""

    row: JobRow
    reason_name: str
    facts: tuple[Fact, ...]
    attempts: tuple[AttemptRow, ...]
    pauses: tuple[PauseRow, ...]
    terminal: tuple[str, ...]
    forms: tuple[JobForm, ...]
    advised: tuple[Advised, ...]
    retried: str


_REASON_NAMES = {
    State.QUEUED: "Why it waits",
    State.PAUSED: "Why it is paused",
    State.SUCCEEDED: "What happened",
    State.FAILED: "What happened",
    State.CANCELLED: "What happened",
}


def job_view(detail: JobDetail, gpus: Sequence[Gpu], reader: Reader, now: datetime) -> JobView:
    """Return the page of one job."""
    job = detail.job
    return JobView(
        row=_row(detail, gpus, reader, now),
        reason_name=_REASON_NAMES.get(job.state, "Status"),
        facts=_facts(detail, now),
        attempts=tuple(_attempt(attempt, gpus, now) for attempt in reversed(detail.attempts)),
        pauses=tuple(_pause(pause, now) for pause in reversed(detail.pauses)),
        terminal=_terminal(job),
        forms=_forms(detail),
        advised=advised(job),
        retried=detail.retried,
    )


def _row(detail: JobDetail, gpus: Sequence[Gpu], reader: Reader, now: datetime) -> JobRow:
    """Return the job as a row; the reader's own ended job can be run again."""
    row = job_row(detail.job, detail.attempts, gpus, reader, now)
    again = Operations.again.form
    if again is None or not row.mine or detail.job.state not in ENDED_STATES:
        return row
    return replace(row, actions=(*row.actions, Action("again", again.label, False, "")))


def _forms(detail: JobDetail) -> tuple[JobForm, ...]:
    """Return the forms of a job in its current state."""
    return tuple(
        JobForm(
            verb,
            one.form.label,
            tuple(_form_field(detail, field) for field in fields(one.body)),
        )
        for verb, one in FORMS.items()
        if one.form is not None and one.body not in (None, ActionReason)
        if verb in detail.job.actions
    )


def _form_field(detail: JobDetail, field: Field) -> FormField:
    fixed = _fixed(detail.job, field.name) if field.name in detail.fixed else ""
    note = fixed or field.help.removesuffix(".")
    label = f"{field.title}: {note[:1].lower() if not fixed else note[:1]}{note[1:]}"
    return FormField(field, label, shown(field, getattr(detail.job, field.name)), fixed)


def _fixed(job: Job, field: str) -> str:
    """Return why a field of a job cannot change now."""
    if job.state is State.PAUSING:
        return "It is leaving its GPUs; change this when it waits."
    if field in ROWS and ROWS[field].when == "elastic":
        return "It runs with all of its workers or none; pause it first."
    return "It can change while the job waits; pause it first."


def _facts(detail: JobDetail, now: datetime) -> tuple[Fact, ...]:
    job = detail.job
    facts = [
        Fact("Project", job.project),
        Fact("User", job.user),
        Fact("Priority", str(job.priority)),
        Fact("Quota", _quota_words(job)),
        Fact("Submitted", at=moment(job.submitted, now)),
    ]
    if job.min_workers != job.workers:
        facts.insert(2, Fact("Workers", f"{job.min_workers} to {job.workers}"))
    if job.started is not None:
        facts.append(Fact("First started", at=moment(job.started, now)))
    if job.ended is not None:
        facts.append(Fact("Ended", at=moment(job.ended, now)))
    if job.exit_code is not None:
        facts.append(Fact("Exit code", str(job.exit_code)))
    if detail.container is not None:
        facts.append(Fact("Container", detail.container.text))
    if detail.kept is not None:
        facts.append(Fact("Kept", kept_for(detail.kept, now)))
    facts += [Fact(title, text) for title, text in titled(job)]
    if job.deadline is not None:
        facts.append(Fact("Deadline", at=moment(job.deadline, now)))
    if job.deadline_standing is not None:
        facts.append(Fact("In time", job.deadline_standing.text))
    if job.awaits:
        facts.append(Fact("After", runs_after(job.awaits)))
    facts += [Fact("Tracker", run.text, url=run.url) for run in job.tracker_runs]
    facts.append(Fact("Id", job.id))
    return tuple(facts)


def _quota_words(job: Job) -> str:
    if not job.preemptible:
        return "never paused for others (not preemptible)"
    if job.over_quota:
        return "over quota: may be paused for others, then resumes automatically"
    if job.state in ACTIVE_STATES:
        return "within quota"
    return "preemptible: may be paused for others while it is over quota"


def _attempt(attempt: Attempt, gpus: Sequence[Gpu], now: datetime) -> AttemptRow:
    end = attempt.ended or now
    places = gpu_places(gpus, attempt.gpus) or ", ".join(attempt.nodes)
    return AttemptRow(
        number=attempt.attempt,
        started=optional_moment(attempt.started, now),
        ended=optional_moment(attempt.ended, now),
        ran="" if attempt.started is None else duration((end - attempt.started).total_seconds()),
        end=_end_words(attempt),
        places=places,
    )


def _end_words(attempt: Attempt) -> str:
    if attempt.ended is None:
        return "running" if attempt.started else "starting"
    return attempt_end(attempt.ended_by, attempt.exit_code)


def _pause(pause: Preemption, now: datetime) -> PauseRow:
    return PauseRow(
        at=moment(pause.at, now),
        why=f"for {pause.for_}, rule {pause.rule}" if pause.by is None else _asked(pause),
        cost=pause.cost,
        resumed=optional_moment(pause.resumed_at, now),
    )


def _asked(pause: Preemption) -> str:
    return f"by {pause.by}: {pause.reason}" if pause.reason else f"by {pause.by}"


def _terminal(job: Job) -> tuple[str, ...]:
    short = job.id[:8]
    if job.state is State.QUEUED:
        return (f"benchpool why {short}", f"benchpool cancel {short}")
    return (f"benchpool show {short}", f"benchpool logs -f {short}")
