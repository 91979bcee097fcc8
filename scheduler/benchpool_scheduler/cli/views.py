"""Output of each type of answer: columns and lines for every verb."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from shlex import join, quote

from benchpool_scheduler import phrases
from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Cell, Column, Screen
from benchpool_scheduler.contract import (
    InLine,
    Job,
    JobDetail,
    JobUsage,
    Preemption,
    ProjectQuota,
    Quota,
    SafeModeIssues,
    SentCode,
    StartEstimates,
    State,
    Status,
    Why,
    as_tree,
)
from benchpool_scheduler.contract.changes import Advised, advice_of, advised
from benchpool_scheduler.contract.forms import titled
from benchpool_scheduler.contract.options import FLAGS
from benchpool_scheduler.contract.people import Person

JOB_COLUMNS = (
    Column("ID"),
    Column("NAME", width=18),
    Column("STATE"),
    Column("GPUS", align="right"),
    Column("PROJECT", width=12),
    Column("AGE", align="right"),
    Column("NOTE", rest=True),
)

ATTEMPT_COLUMNS = (
    Column("ATTEMPT", align="right"),
    Column("STARTED"),
    Column("RAN", align="right"),
    Column("EXIT", align="right"),
    Column("END"),
    Column("GPUS", align="right"),
    Column("NODES", rest=True),
)

ESTIMATE_COLUMNS = (
    Column("PREDICTED WAIT"),
    Column("ESTIMATES", align="right"),
    Column("IN THE RANGE", align="right"),
    Column("EARLIER", align="right"),
    Column("LATER", align="right"),
)

LINE_COLUMNS = (
    Column("POSITION", align="right"),
    Column("USER", width=16),
    Column("SERVER", width=16),
    Column("GPUS", align="right"),
    Column("WAITS", align="right"),
    Column("STARTS"),
    Column("REASON", rest=True),
)

PROJECT_COLUMNS = (
    Column("PROJECT", width=20),
    Column("QUOTA", align="right"),
    Column("FAIR SHARE", align="right"),
    Column("ALLOCATED", align="right"),
    Column("LIMIT", align="right"),
    Column("WAITING", align="right"),
)


def jobs(screen: Screen, listed: Sequence[Job]) -> None:
    """Print a list of jobs, and below it the full text of failures that were cut."""
    if not listed:
        screen.line("No matching jobs. Send one with `benchpool submit --gpus 1 train.py`.")
        return
    now = datetime.now(UTC)
    cut = screen.table(JOB_COLUMNS, [_job_row(job, now) for job in listed])
    for one in (listed[at] for at in cut):
        if one.state is State.FAILED:
            screen.line(f"{words.short(one.id)}  {words.clean(words.note(one, now))}")


def job(screen: Screen, detail: JobDetail) -> None:
    """Print one job and its attempts."""
    one, now = detail.job, datetime.now(UTC)
    sign, _ = words.STATE_SIGNS[one.state]
    screen.heading(f"{sign} {one.state}  {words.clean(one.name)}")
    screen.facts((name, words.clean(value)) for name, value in _job_facts(one, now) if value)
    if detail.container is not None:
        screen.facts([("Container", words.clean(detail.container.text))])
    if detail.kept is not None:
        screen.facts([("Kept", phrases.kept_for(detail.kept, now))])
    screen.facts([("Page", words.clean(screen.link(one.url)))])
    screen.facts(("Tracker", words.clean(screen.link(run.url))) for run in one.tracker_runs)
    if detail.usage is not None:
        screen.facts(_usage_facts(detail.usage))
    if detail.retried:
        screen.facts([("Retries", words.clean(detail.retried))])
    for pause in detail.pauses:
        screen.line(_pause(pause))
    if detail.attempts:
        screen.line()
        screen.table(ATTEMPT_COLUMNS, _attempt_rows(detail, now))


def usage(screen: Screen, answer: JobUsage) -> None:
    """Print how a job used its resources."""
    screen.heading(words.clean(answer.text))
    screen.facts([*((one.name, one.text) for one in answer.figures), *_to_change(answer)])


def _usage_facts(answer: JobUsage) -> Iterable[tuple[str, str]]:
    """Return the facts about the use of a job, for ``job``."""
    figures = ", ".join(f"{one.name} {one.text}" for one in answer.figures)
    facts = [("Used", figures), ("Found", words.clean(answer.text))]
    return [(name, text) for name, text in (*facts, *_to_change(answer)) if text]


def _to_change(answer: JobUsage) -> list[tuple[str, str]]:
    facts = (("Change", words.clean(answer.change)), ("Send with", words.clean(answer.option)))
    return [(name, text) for name, text in facts if text]


def _pause(pause: Preemption) -> str:
    who = f"for {pause.for_} by rule {pause.rule}" if pause.by is None else f"by {pause.by}"
    why = f" ({pause.reason})" if pause.reason else ""
    on = f"; resumed {words.local(pause.resumed_at)}" if pause.resumed_at else ""
    lost = f"progress lost: {pause.cost}"
    return words.clean(f"Paused at {words.local(pause.at)} {who}{why}; {lost}{on}.")


def why(screen: Screen, answer: Why) -> None:
    """Print why a job waits."""
    late = None if answer.deadline is None else words.clean(answer.deadline.text)
    if answer.reason is None:
        screen.heading("The job does not wait.")
        screen.facts([("Deadline", late)] if late else [])
        return
    screen.heading(words.clean(answer.reason.text))
    starts = phrases.start_sentence(answer.estimated_start, datetime.now(UTC))
    waits = answer.would_start_with is not None
    screen.facts(
        [
            *([("Starts", starts)] if waits else []),
            (
                "With" if waits else "Next",
                words.clean(answer.would_start_with or answer.reason.remedy),
            ),
            *_to_do(answer.job, advice_of(answer.reason)),
            *([("Deadline", late)] if late else []),
            ("Code", answer.reason.code),
        ]
    )


def _to_do(job: str, advice: Iterable[Advised]) -> list[tuple[str, str]]:
    """Return the commands that follow a reason's advice."""
    verb = f"benchpool change {words.short(job)}"
    return [("Do that", f"{verb} {FLAGS[it.name]} {quote(it.text)}") for it in advice]


def code(screen: Screen, answer: SentCode) -> None:
    """Print what a job was sent to run, in a form that can be run again."""
    if answer.kind == "command":
        screen.line(words.clean(join(answer.command)))
    elif answer.kind == "script" and answer.text is None:
        screen.aside("Its script was not copied: it ran from its own folder.")
    for line in (answer.text or "").splitlines():
        screen.line(phrases.visible(line.expandtabs(4)))
    if answer.cut:
        screen.aside("Only the first MiB of the script is shown.")
    for cell in answer.cells:
        screen.heading(f"# cell {cell.number}")
        mark = "" if cell.cell_type == "code" else "# "
        for line in cell.source.splitlines():
            screen.line(mark + phrases.visible(line.expandtabs(4)))
        screen.line("")


def estimates(screen: Screen, answer: StartEstimates) -> None:
    """Print the accuracy of start estimates."""
    screen.table(
        ESTIMATE_COLUMNS,
        [
            phrases.horizon_row(it.up_to_s, it.starts, it.inside, it.before, it.after)
            for it in answer.horizons
        ],
    )
    screen.line(f"Target in the range: {phrases.percent(answer.wanted)}.")


PEOPLE_COLUMNS = (
    Column("USER", width=16),
    Column("BENCH", align="right"),
    Column("FROM", width=18),
    Column("LAST SEEN"),
    Column("PROJECTS", rest=True),
)


def people(screen: Screen, answer: Sequence[Person]) -> None:
    """Print the users of the pool."""
    now = datetime.now(UTC)
    rows = []
    for one in answer:
        seen = (
            "never" if one.last_seen is None else phrases.ago((now - one.last_seen).total_seconds())
        )
        leads = [f"{name} (leads)" for name in one.leads if name not in one.projects]
        led = [f"{name} (leads)" if name in one.leads else name for name in one.projects]
        rows.append(
            (one.name, f"{one.held}/{one.quota}", one.rule, seen, ", ".join([*led, *leads]) or "-")
        )
    screen.table(PEOPLE_COLUMNS, rows)


def quota(screen: Screen, answer: Quota) -> None:
    """Print a user's quota: the bench first, then the projects."""
    build = answer.build
    held = sum(len(one.gpus) for one in build.held)
    lent = f", {build.lent} lent by parked benches" if build.lent else ""
    screen.heading(
        f"{words.clean(answer.user)}: {held} of {build.quota} bench GPUs held{lent}, "
        f"{build.free} free"
    )
    screen.facts([("Rule", words.clean(build.rule))])
    screen.facts(
        (
            f"Server {one.server or '(default)'}",
            f"{phrases.count(len(one.gpus), 'GPU')}: {', '.join(one.gpus)}",
        )
        for one in build.held
    )
    if answer.files:
        screen.facts([("Kept files", phrases.files_held(answer.files))])
    if answer.gpu_hours is not None:
        screen.facts([("GPU-hours", answer.gpu_hours.text)])
    if answer.projects:
        screen.line()
        projects(screen, answer.projects)


def line(screen: Screen, waiting: Sequence[InLine]) -> None:
    """Print the bench queue."""
    if not waiting:
        screen.line("No server that you may see waits for a bench.")
        return
    now = datetime.now(UTC)
    screen.table(
        LINE_COLUMNS,
        [
            (
                str(one.place.position),
                one.user,
                one.server or "(default)",
                " ".join([str(one.gpus), *one.gpu_models]),
                phrases.duration((now - one.place.since).total_seconds()),
                phrases.start_range(one.place.estimated_start, now),
                one.place.reason.text,
            )
            for one in waiting
        ],
    )


def projects(screen: Screen, listed: Sequence[ProjectQuota]) -> None:
    """Print projects with their allocation and fair share."""
    screen.table(
        PROJECT_COLUMNS,
        [
            (
                f"{'  ' * depth}{words.clean(one.name)}",
                words.bound(one.quota),
                str(one.fair_share),
                str(one.allocated),
                words.bound(one.limit),
                str(one.waiting),
            )
            for depth, one in as_tree(listed)
        ],
    )
    screen.facts(
        (f"GPU-hours of {words.clean(one.name)}", one.gpu_hours.text)
        for one in listed
        if one.gpu_hours is not None
    )
    screen.facts(
        (f"Guaranteed to {words.clean(one.name)}", it.text) for one in listed for it in one.reserved
    )


def status(screen: Screen, answer: Status, own: Sequence[Job]) -> None:
    """Print the pool's summary, GPUs by use, projects, and the user's own jobs."""
    screen.heading(words.clean(answer.text))
    if answer.simulated:
        screen.line("The GPUs are simulated: jobs see their names and compute on the processor.")
    screen.facts(
        (str(count), phrases.GPU_STATES[state]) for state, count in answer.counts.items() if count
    )
    if answer.bench_line:
        number = answer.bench_line
        who = "1 server waits" if number == 1 else f"{number} servers wait"
        screen.line(f"{who} for a bench: see `benchpool bench queue`.")
    for problem in answer.health.problems:
        screen.line(f"! {words.clean(problem)}")
    if answer.projects:
        screen.line()
        projects(screen, answer.projects)
    if own:
        screen.line()
        jobs(screen, own)


def _job_row(job: Job, now: datetime) -> tuple[str | Cell, ...]:
    sign, colour = words.STATE_SIGNS[job.state]
    gpus = str(job.gpus) if job.workers == 1 else f"{job.workers}×{job.gpus}"
    return (
        words.short(job.id),
        job.name,
        Cell(f"{sign} {job.state}", colour),
        gpus,
        job.project,
        words.age(job, now),
        words.note(job, now) or job.note,
    )


def _job_facts(job: Job, now: datetime) -> list[tuple[str, str]]:
    workers = "" if job.workers == 1 else f" on each of {job.workers} workers"
    reason = "" if job.reason is None else job.reason.text
    waits = job.state is State.QUEUED
    return [
        ("Pause", phrases.pause_words(job.pause, now)),
        ("Reason", reason),
        ("Remedy", "" if job.reason is None else job.reason.remedy),
        *_to_do(job.id, advised(job)),
        ("Starts", phrases.start_sentence(job.estimated_start, now) if waits else ""),
        ("Progress", words.note(job) if job.progress and not reason else ""),
        ("Id", job.id),
        ("Project", f"{job.project}, of {job.user}, priority {job.priority}"),
        ("GPUs", f"{job.gpus}{workers}{', over quota' if job.over_quota else ''}"),
        *titled(job),
        ("After", phrases.runs_after(job.awaits)),
        ("Deadline", words.local(job.deadline) if job.deadline else ""),
        ("In time", "" if job.deadline_standing is None else job.deadline_standing.text),
        ("Submitted", words.local(job.submitted)),
        ("Started", words.local(job.started) if job.started else ""),
        ("Ended", words.local(job.ended) if job.ended else ""),
        ("Exit code", "" if job.exit_code is None else str(job.exit_code)),
    ]


def _attempt_rows(detail: JobDetail, now: datetime) -> list[tuple[str, ...]]:
    return [
        (
            str(one.attempt),
            words.local(one.started),
            phrases.duration(((one.ended or now) - one.started).total_seconds())
            if one.started
            else "-",
            "-" if one.exit_code is None else str(one.exit_code),
            phrases.ENDS.get(one.ended_by or "-", one.ended_by or "-"),
            str(len(one.gpus)),
            ", ".join(dict.fromkeys(one.nodes)),
        )
        for one in detail.attempts
    ]


def doubts(screen: Screen, answer: SafeModeIssues) -> None:
    """Print the safe mode issues: unknown running jobs and unreadable records."""
    if answer.hold is not None:
        screen.line(f"! {words.clean(answer.hold)}")
    if answer.hub is not None:
        screen.line(f"! {words.clean(answer.hub)}")
    for job in answer.unknown:
        what = f"{job.name} of {job.user} in {job.project}" if job.name else "of unknown name"
        gpus = "GPUs unknown" if job.gpus is None else f"{phrases.count(len(job.gpus), 'GPU')}"
        screen.line(
            words.clean(f"runs, not known   {job.id}  {what}, attempt {job.attempt}, {gpus}")
        )
    for it in answer.unreadable:
        gpus = phrases.count(len(it.gpus), "GPU")
        screen.line(
            words.clean(f"cannot be read    {it.id}  a {it.kind} in {it.file}, {gpus}: {it.why}")
        )
    if answer.unknown or answer.unreadable:
        screen.line("`benchpool adopt ID` adopts one, `benchpool adopt ID --end` ends it.")
    elif answer.hold is None and answer.hub is None:
        screen.line("All running jobs and benches are known, and all records can be read.")
