"""What a plan comes to when its commands take effect at once.

The simulator and the what-if look at the pool this way; in the service a command takes effect
when its workers have really started or gone.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from benchpool_scheduler.core.model import Activity, Job, JobId, Plan, Preempt, Snapshot, Start


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot in which the commands of a plan have taken effect.

    Only a start that waits for a job which is terminating in the snapshot itself stays a promise:
    such jobs stay terminating.

    >>> from benchpool_scheduler.core.model import Node, NodeName, GpuId, Project, ProjectName
    >>> from benchpool_scheduler.core.plan import decide
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("n"), (GpuId("g"),)),),
    ...     projects=(Project(ProjectName("p")),),
    ...     jobs=(Job(JobId("j"), ProjectName("p")),),
    ... )
    >>> after(pool, decide(pool)).jobs[0].activity.value
    'running'
    """
    jobs = {job.id: job for job in snapshot.jobs}
    releasing = {job.id for job in snapshot.jobs if job.activity is Activity.TERMINATING}
    for command in plan.commands:
        job = jobs[command.job]
        if isinstance(command, Preempt):
            jobs[job.id] = _preempted(job, command, snapshot.now_s)
        else:
            jobs[job.id] = _started(job, command, releasing, snapshot.now_s)
    return replace(snapshot, jobs=tuple(jobs.values()))


def _preempted(job: Job, command: Preempt, now_s: float) -> Job:
    held = tuple(worker for worker in job.held if worker not in command.workers)
    if held:
        return replace(job, held=held)
    return replace(
        job,
        held=(),
        activity=Activity.QUEUED,
        as_of_s=now_s,
        ran_s=0.0,
        since_checkpoint_s=None,
        waits_s=0.0,
        done_s=job.done_s + max(0.0, job.ran_at(now_s) - job.unsaved_at(now_s)),
        preemptions_last_hour=job.preemptions_last_hour + 1,
    )


def _started(job: Job, command: Start, releasing: AbstractSet[JobId], now_s: float) -> Job:
    if releasing & set(command.after):
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
        since_checkpoint_s=None,
    )
