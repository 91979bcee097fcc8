"""Content of the Hub's home page: the user's quota and jobs, and the pool, in one line each.

Pure: ``model`` builds it from the scheduler's answers, and the template writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import BuildQuota, Job, ProjectQuota, State
from benchpool_scheduler.contract.access import AccessRequest
from benchpool_scheduler.phrases import count, is_are, percent, server_called
from benchpool_spawner.form import free_at_once
from benchpool_spawner.lease_client import MOST_JOBS, Today

SHOWN_JOBS = 5


@dataclass(frozen=True, slots=True)
class JobLine:
    """Job that has not ended. ``note``: why it waits, or its progress."""

    name: str
    url: str
    state: str
    note: str


@dataclass(frozen=True, slots=True)
class Home:
    """Content of the home page above the servers. Each line is a complete sentence.

    Attributes:
        silent: Whether the scheduler does not answer, so that there are no figures.
        asking: Users who request access to the user's projects. Empty if there are none.
        projectless: Whether the user belongs to no project, and so cannot submit jobs.
    """

    silent: bool
    bench: str = ""
    jobs: str = ""
    pool: str = ""
    newest: tuple[JobLine, ...] = ()
    more: int = 0
    projectless: bool = False
    asking: str = ""
    simulated: bool = False


def model(today: Today) -> Home:
    """Return the content of the home page."""
    if today.quota is None or today.status is None or today.jobs is None:
        return Home(silent=True)
    return Home(
        silent=False,
        bench=bench_line(today.quota.build, free_at_once(today.quota.build.free, today.status)),
        jobs=jobs_line(today.jobs, today.quota.projects),
        pool=today.status.text,
        newest=tuple(_line(job) for job in today.jobs[:SHOWN_JOBS]),
        more=max(0, len(today.jobs) - SHOWN_JOBS),
        projectless=not today.quota.projects,
        asking=asking_line(today.access_requests),
        simulated=today.status.simulated,
    )


def bench_line(build: BuildQuota, at_once: int) -> str:
    """Return the line about the user's build quota and its holders.

    Args:
        build: The quota.
        at_once: Number of its free GPUs that a start gets now, as in the start form.

    >>> from benchpool_scheduler.contract import HeldBuild
    >>> held = BuildQuota(3, "user susan", [HeldBuild("", ["GPU-1"])], 2)
    >>> bench_line(held, 2)
    '1 of 3 GPUs of your build quota is held by your default server, 2 are free for you now.'
    >>> bench_line(held, 1)  # doctest: +ELLIPSIS
    '1 of 3 ... 2 are left: 1 at once, 1 is lent or in use.'
    >>> bench_line(BuildQuota(2, "user susan", [], 2), 0)
    'Your build quota is 2 GPUs (user susan): none at once, 2 are lent or in use.'
    >>> bench_line(BuildQuota(1, "user susan", [], 0, lent=1), 0)
    'Your build quota is 1 GPU (user susan): none is left. 1 is lent while your server is parked.'
    >>> bench_line(BuildQuota(0, "default", [], 0), 0)
    'Your build quota is 0 GPUs (default): servers start without a GPU; training uses the pool.'
    """
    if not build.quota and not build.held:
        return (
            f"Your build quota is 0 GPUs ({build.rule}): servers start without a GPU; training "
            "uses the pool."
        )
    lent = f" {build.lent} {is_are(build.lent)} lent while your server is parked."
    parked = lent if build.lent else ""
    held = sum(len(one.gpus) for one in build.held)
    quota = count(build.quota, "GPU")
    waited = build.free - at_once
    later = f"{at_once or 'none'} at once, {waited} {is_are(waited)} lent or in use"
    if not held:
        now = ", free for you now" if build.free else ": none is left"
        return (
            f"Your build quota is {quota} ({build.rule}){f': {later}' if waited else now}.{parked}"
        )
    servers = " and ".join(server_called(one.server, "your") for one in build.held)
    free = "none is left"
    if build.free:
        left = f"{build.free} {is_are(build.free)}"
        free = f"{left} left: {later}" if waited else f"{left} free for you now"
    return (
        f"{held} of {quota} of your build quota {is_are(held)} held by {servers}, {free}.{parked}"
    )


def jobs_line(jobs: Sequence[Job], projects: Sequence[ProjectQuota]) -> str:
    """Return the line about the user's jobs by state, and the projects for new jobs.

    >>> jobs_line([], [ProjectQuota("research", 3, 3, 0, None, 0)])
    'You have no running or waiting jobs. You send jobs to project research.'
    """
    where = ""
    if projects:
        names = ", ".join(one.name for one in projects[:3]) + (", …" if projects[3:] else "")
        where = f" You send jobs to {'project' if len(projects) == 1 else 'projects'} {names}."
    if not jobs:
        return f"You have no running or waiting jobs.{where}"
    counts = Counter(job.state for job in jobs)
    parts = [f"{counts[state]} {state}" for state in State if counts[state]]
    of = f"Of your newest {MOST_JOBS} jobs: " if len(jobs) >= MOST_JOBS else "Your jobs: "
    return f"{of}{', '.join(parts)}.{where}"


def asking_line(requests: Sequence[AccessRequest]) -> str:
    """Return the line about the access requests that the user may decide.

    >>> from datetime import UTC, datetime
    >>> asking_line([AccessRequest("joe", "vision", datetime.now(UTC), "")])
    'joe asks for access to vision.'
    """
    if not requests:
        return ""
    first = requests[0]
    others = f" and {count(len(requests) - 1, 'other')}" if requests[1:] else ""
    return (
        f"{first.user}{others} {'ask' if others else 'asks'} for access to "
        f"{'projects of yours' if others else first.project}."
    )


def _line(job: Job) -> JobLine:
    note = ""
    if job.reason is not None:
        note = job.reason.text
    elif job.progress is not None:
        part = "" if job.progress.fraction is None else f"{percent(job.progress.fraction)} "
        note = f"{part}{job.progress.text or ''}".strip()
    return JobLine(job.name, job.url, str(job.state), note)
