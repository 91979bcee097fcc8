"""A pool as a service sees it while victims save their work, and when they have gone.

``simulation.passes.after`` lets every command take effect at once; here those who were told to
leave hold their GPUs for a while, and who waits for them keeps a promise (R20).
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
    """Return the pool when a plan's victims have their notice and nobody has left yet.

    A job that only shrinks gives its surplus workers back at once.
    """
    jobs = {job.id: job for job in pool.jobs}
    for command in plan.commands:
        job = jobs[command.job]
        jobs[job.id] = _told(job, command) if isinstance(command, Preempt) else _given(job, command)
    return replace(pool, jobs=tuple(jobs.values()))


def _told(job: JobFacts, command: Preempt) -> JobFacts:
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
    """Return the pool when all who were leaving have left; they queue again."""
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
    """Return all workers that a plan gives a job, what must wait included."""
    return tuple(
        worker
        for command in plan.commands
        if isinstance(command, Start) and command.job == job
        for worker in command.workers
    )
