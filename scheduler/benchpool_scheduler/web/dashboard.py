"""The start page: pool, queue, benches, projects."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.contract import Health, Job, JobsQuery, Quota, State, Status
from benchpool_scheduler.contract.forms import fields
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.phrases import count, files_held
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.web.access_forms import access_view
from benchpool_scheduler.web.benches_view import benches_view, line_view
from benchpool_scheduler.web.flash import flash
from benchpool_scheduler.web.job_rows import (
    ENDED_SHOWN,
    JobsView,
    Reader,
    attempts_of,
    jobs_view,
    reasons_of,
)
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.pool_view import pool_view
from benchpool_scheduler.web.projects_view import projects_view
from benchpool_scheduler.web.words import ENDED_STATES

MOST_JOBS = 5000


class DashboardHandler(PageHandler):
    """``GET <prefix>``: all that the reader may see of the pool."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        reader = Reader(caller.name, caller.admin)
        status = pool.views.status(caller)
        seen, chosen = visible_jobs(pool, caller), self._chosen()
        listed = visible_jobs(pool, caller, **chosen) if chosen else seen
        jobs = jobs_view(listed, attempts_of(pool, caller, listed), status.gpus, reader, now)
        leases = pool.benches.leases(caller)
        users = {lease.user for lease in leases} | (
            {caller.name} if caller.kind == "user" else set()
        )
        await self.show(
            "dashboard.html",
            self.facts(),
            flash=flash(self, caller),
            pool=pool_view(status, {job.id: job for job in seen}, now, racks(pool)),
            jobs=jobs,
            chosen=chosen,
            reasons=reasons_of(job for job in seen if job.state is State.QUEUED),
            benches=benches_view(leases, quotas(pool, caller, users), status.gpus, now),
            line=line_view(pool.benches.line(caller), now),
            line_sentence=line_sentence(status),
            projects=projects_view(
                status.projects,
                self.get_query_arguments("fold"),
                self.get_query_argument("at", ""),
            ),
            hours=_own_hours(pool, caller),
            access=await access_view(pool, caller, now),
            queue_sentence=queue_sentence(jobs, status),
            running_sentence=running_sentence(jobs, status),
            kept_sentence=pool.views.kept(),
            held_sentence=files_held(await pool.files.of(caller.name)),
            health_sentence=health_sentence(status.health),
        )

    def _chosen(self) -> dict[str, str]:
        """Return the job filters of the address, as fields of ``JobsQuery``."""
        asked = [one.name for one in fields(JobsQuery) if one.kind == "text"]
        given = {name: self.get_query_argument(name, "") for name in asked}
        return {name: value for name, value in given.items() if value}


def _own_hours(pool: Pool, caller: Caller) -> str:
    """Return the reader's use of a budget of GPU-hours; empty without a budget."""
    hours = pool.views.quota(caller).gpu_hours if caller.kind == "user" else None
    return "" if hours is None else hours.text


def racks(pool: Pool) -> dict[str, str]:
    """Return the location of each node, by the levels of the topology, the widest first."""
    seen = pool.observed.now
    levels = seen.configuration.topology
    return {
        node.name: " · ".join(node.labels[it.label] for it in levels if it.label in node.labels)
        for node in seen.inventory.reported
    }


def visible_jobs(pool: Pool, caller: Caller, **chosen: str) -> list[Job]:
    """Return all unfinished jobs and the newest ended ones."""
    return [
        job
        for state in State
        for job in pool.jobs.select(
            caller,
            all=True,
            state=state,
            limit=ENDED_SHOWN if state in ENDED_STATES else MOST_JOBS,
            **chosen,
        )
    ]


def quotas(pool: Pool, caller: Caller, users: Sequence[str] | set[str]) -> list[Quota]:
    """Return the quotas of benches with held or allowed GPUs."""
    found: list[Quota] = []
    for user in sorted(users):
        try:
            quota = pool.views.quota(caller, user)
        except NotFound:
            continue  # the user was removed from the Hub, and the server is still ending
        if quota.build.quota or quota.build.held:
            found.append(quota)
    return found


def queue_sentence(jobs: JobsView, status: Status) -> str:
    """Return the number of waiting jobs, and how many of them the reader sees."""
    return _of_all(len(jobs.waiting), status.queue_length, "waiting")


def running_sentence(jobs: JobsView, status: Status) -> str:
    """Return the number of running jobs, and how many of them the reader sees."""
    return _of_all(len(jobs.running), status.running, "running")


def line_sentence(status: Status) -> str:
    """Return the number of servers that wait for a bench."""
    waits = "waits" if status.bench_line == 1 else "wait"
    return f"{count(status.bench_line, 'server')} {waits} for a bench"


def health_sentence(health: Health) -> str:
    """Return the scheduler's own state in one line."""
    state = "healthy" if health.ok else count(len(health.problems), "problem")
    return (
        f"Scheduler: {state}; last pass took {health.last_pass_ms:.1f} ms, {health.passes} so far"
    )


def _of_all(seen: int, total: int, word: str) -> str:
    if seen >= total:
        return f"{count(seen, 'job') if seen else 'no job'} {word}"
    return f"{count(total, 'job')} {word}, you see {seen or 'none'}"
