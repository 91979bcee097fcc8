"""Effect of commands on jobs in virtual time.

Simulator, estimates, what-if and replay use this model: a command takes effect at once. In the
service a command takes effect when its workers have started or gone. The callers differ only in the
cost of a pause, which each passes as a ``Lost`` function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from benchpool_scheduler.core.model import (
    Activity,
    Command,
    JobFacts,
    JobId,
    Plan,
    Snapshot,
    Start,
)

Lost = Callable[[JobFacts, float], float]
"""Returns the seconds of a job's present attempt that a pause at an instant loses."""


def unsaved(job: JobFacts, now_s: float) -> float:
    """Return the unsaved progress, without a restart cost. It applies to a single instant."""
    return min(job.ran_at(now_s), job.unsaved_at(now_s))


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot in which the commands of a plan have taken effect.

    A start stays a promise only if it waits for a job that is terminating in the snapshot. Such
    jobs stay terminating.

    >>> from benchpool_scheduler.core.model import Node, NodeName, GpuId, Project, ProjectName
    >>> from benchpool_scheduler.core.plan import decide
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("n"), (GpuId("g"),)),),
    ...     projects=(Project(ProjectName("p")),),
    ...     jobs=(JobFacts(JobId("j"), ProjectName("p")),),
    ... )
    >>> after(pool, decide(pool)).jobs[0].activity.value
    'running'
    """
    jobs = {job.id: job for job in snapshot.jobs}
    releasing = {job.id for job in snapshot.jobs if job.activity is Activity.TERMINATING}
    for command in plan.commands:
        jobs[command.job] = apply(jobs[command.job], command, snapshot.now_s, unsaved, releasing)
    return replace(snapshot, jobs=tuple(jobs.values()))


def apply(
    job: JobFacts, command: Command, now_s: float, lost: Lost, releasing: Collection[JobId] = ()
) -> JobFacts:
    """Return the job after one of its commands.

    Args:
        lost: Cost of a pause.
        releasing: Leaving jobs that still hold GPUs. A start that waits for one stays a promise.
    """
    if isinstance(command, Start):
        return _started(job, command, now_s, releasing)
    held = tuple(worker for worker in job.held if worker not in command.workers)
    return replace(job, held=held) if held else paused(job, now_s, lost)


def paused(job: JobFacts, now_s: float, lost: Lost) -> JobFacts:
    """Return a job that left its GPUs. It is queued again with its saved progress."""
    return replace(
        job,
        held=(),
        activity=Activity.QUEUED,
        as_of_s=now_s,
        ran_s=0.0,
        since_checkpoint_s=None,
        waits_s=0.0,
        done_s=job.done_s + (job.ran_at(now_s) - lost(job, now_s)),
        preemptions_last_hour=job.preemptions_last_hour + 1,
        preemptions_last_day=job.preemptions_last_day + 1,
    )


def _started(job: JobFacts, command: Start, now_s: float, releasing: Collection[JobId]) -> JobFacts:
    if any(other in releasing for other in command.after):
        return replace(job, is_nominated=True, nominated=command.workers)
    held = (*job.held, *command.workers)
    if job.held:
        return replace(job, held=held, is_nominated=False, nominated=())
    return replace(
        job,
        held=held,
        activity=Activity.RUNNING,
        is_nominated=False,
        nominated=(),
        as_of_s=now_s,
        ran_s=0.0,
        since_checkpoint_s=0.0 if job.checkpoints else None,
        begun=True,
    )
