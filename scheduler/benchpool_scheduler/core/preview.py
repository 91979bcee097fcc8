"""What would happen if a job were submitted now: a pass over the pool with that job in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from benchpool_scheduler.core.feasibility import possible
from benchpool_scheduler.core.model import Activity, Job, Plan, Reason, Snapshot, Start
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.core.room import Room
from benchpool_scheduler.core.tree import Tree
from benchpool_scheduler.core.works import work_of

Starts = Literal["now", "after-reclaim", "waits", "never"]


@dataclass(frozen=True, slots=True)
class PreviewOutcome:
    """What would come of the job.

    Attributes:
        starts: ``now``; ``after-reclaim`` when others give back first, within the grace period;
            ``waits``; ``never`` when it could not run even in an empty pool.
        within_quota: GPUs of the whole job that its project's guaranteed quota still covers.
        over_quota: The rest, which others may take back.
        reason: Why it would wait, or never run.
    """

    starts: Starts
    within_quota: int
    over_quota: int
    reason: Reason | None


def preview(snapshot: Snapshot, job: Job) -> PreviewOutcome:
    """Say what would come of a job that is not in the snapshot yet.

    Raises:
        InvalidInput: The job names no project that may hold jobs, or has impossible numbers.

    >>> from benchpool_scheduler.core.model import GpuId, JobId, Node, NodeName, Project
    >>> from benchpool_scheduler.core.model import ProjectName
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("box"), (GpuId("a"), GpuId("b"))),),
    ...     projects=(Project(ProjectName("susan"), quota=1),),
    ...     jobs=(),
    ... )
    >>> preview(pool, Job(JobId("new"), ProjectName("susan"), gpus=2))
    PreviewOutcome(starts='now', within_quota=1, over_quota=1, reason=None)
    >>> preview(pool, Job(JobId("new"), ProjectName("susan"), gpus=3)).starts
    'never'
    """
    queued = replace(job, activity=Activity.QUEUED, held=(), earmarked=False, promised=())
    plan = decide(replace(snapshot, jobs=(*snapshot.jobs, queued)))
    within = _covered(snapshot, queued)
    reason = plan.reasons.get(job.id)
    return PreviewOutcome(
        starts=_starts(snapshot, queued, plan),
        within_quota=within,
        over_quota=job.gpus * job.workers - within,
        reason=reason,
    )


def _starts(snapshot: Snapshot, job: Job, plan: Plan) -> Starts:
    for command in plan.commands:
        if isinstance(command, Start) and command.job == job.id:
            return "after-reclaim" if command.after else "now"
    return "waits" if could_ever_run(snapshot, job) else "never"


def could_ever_run(snapshot: Snapshot, job: Job) -> bool:
    """Tell whether the job could run if the pool were empty and all of its nodes ready."""
    tree = Tree(snapshot.projects)
    empty = Room([replace(node, ready=True) for node in snapshot.nodes], snapshot.topology)
    return possible(work_of(job, 0, tree), empty, tree)


def _covered(snapshot: Snapshot, job: Job) -> int:
    """Return how many of the job's GPUs the quota covers beside what its project holds."""
    asked = job.gpus * job.workers
    quota = next(p.quota for p in snapshot.projects if p.name == job.project)
    if quota is None:
        return asked
    held = sum(
        other.gpus * len(other.held)
        for other in snapshot.jobs
        if other.project == job.project and other.activity is Activity.RUNNING
    )
    return min(asked, max(0, quota - held))
