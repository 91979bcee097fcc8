"""A service's view of the pool while victims save their work, and after they have left.

``simulation.passes.after`` applies every command immediately. Here, the preempted jobs hold their
GPUs for a while, and the waiting claimant keeps its promise (R20).
"""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.core.model import (
    Activity,
    JobFacts,
    JobId,
    Plan,
    Preempt,
    Snapshot,
    Start,
    Worker,
)


def under_way(pool: Snapshot, plan: Plan) -> Snapshot:
    """Return the pool when a plan's victims have their notice and all still hold their GPUs.

    A job that only shrinks releases its surplus workers immediately.
    """
    jobs = {job.id: job for job in pool.jobs}
    for command in plan.commands:
        job = jobs[command.job]
        jobs[job.id] = (
            _notified(job, command) if isinstance(command, Preempt) else _given(job, command)
        )
    return replace(pool, jobs=tuple(jobs.values()))


def _notified(job: JobFacts, command: Preempt) -> JobFacts:
    left = tuple(worker for worker in job.held if worker not in command.workers)
    if left:
        return replace(job, held=left)
    return replace(job, activity=Activity.TERMINATING)


def _given(job: JobFacts, command: Start) -> JobFacts:
    if not command.after:
        fresh = not job.held
        return replace(
            job,
            activity=Activity.RUNNING,
            held=(*job.held, *command.workers),
            is_nominated=False,
            nominated=(),
            ran_s=0.0 if fresh else job.ran_s,
            since_checkpoint_s=None if fresh else job.since_checkpoint_s,
        )
    leaves = job.activity is Activity.TERMINATING
    return replace(job, is_nominated=not leaves, nominated=command.workers)


def gone(pool: Snapshot) -> Snapshot:
    """Return the pool after all leaving jobs have left; they are queued again."""
    return replace(pool, jobs=tuple(_left(job) for job in pool.jobs))


def _left(job: JobFacts) -> JobFacts:
    if job.activity is not Activity.TERMINATING:
        return job
    return replace(
        job,
        activity=Activity.QUEUED,
        held=(),
        is_nominated=bool(job.nominated),
        ran_s=0.0,
        since_checkpoint_s=None,
        preemptions_last_hour=job.preemptions_last_hour + 1,
        preemptions_last_day=job.preemptions_last_day + 1,
    )


def places(plan: Plan, job: JobId | str) -> tuple[Worker, ...]:
    """Return all workers that a plan assigns to a job, including earmarked places."""
    return tuple(
        worker
        for command in plan.commands
        if isinstance(command, Start) and command.job == job
        for worker in command.workers
    )
