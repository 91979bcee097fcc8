"""Preview of a job: the outcome of a pass over the pool if the job were submitted now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchpool_scheduler.core.capacity.feasibility import possible
from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import job_info_of
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import (
    Activity,
    JobFacts,
    Node,
    Plan,
    Snapshot,
    Start,
    WaitReason,
)
from benchpool_scheduler.core.plan import decide_on

Starts = Literal["now", "after-reclaim", "waits", "never"]


@dataclass(frozen=True, slots=True)
class PreviewOutcome:
    """Outcome of a job that is submitted now.

    Attributes:
        starts: ``now``; ``after-reclaim`` if other jobs must leave first, within the grace period;
            ``waits``; ``never`` if it could not run even in an empty pool.
        within_quota: GPUs of the whole job that its project's guaranteed quota still covers.
        over_quota: The remaining GPUs, which may be reclaimed.
        reason: Why it would wait or never run.
    """

    starts: Starts
    within_quota: int
    over_quota: int
    reason: WaitReason | None


def preview(snapshot: Snapshot, job: JobFacts) -> PreviewOutcome:
    """Return the outcome of a job that is not in the snapshot yet.

    Raises:
        InvalidInput: The job names no project that may hold jobs, or has impossible numbers.

    >>> from benchpool_scheduler.contract.spec import JobSpec
    >>> from benchpool_scheduler.core.model import GpuId, JobId, Node, NodeName, Project
    >>> from benchpool_scheduler.core.model import ProjectName
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("box"), (GpuId("a"), GpuId("b"))),),
    ...     projects=(Project(ProjectName("susan"), quota=1),),
    ...     jobs=(),
    ... )
    >>> preview(pool, JobFacts(JobId("new"), ProjectName("susan"), JobSpec(gpus=2)))
    PreviewOutcome(starts='now', within_quota=1, over_quota=1, reason=None)
    >>> preview(pool, JobFacts(JobId("new"), ProjectName("susan"), JobSpec(gpus=3))).starts
    'never'
    """
    return preview_on(ClusterState.of(snapshot), job, snapshot.now_s)


def preview_on(state: ClusterState, job: JobFacts, now_s: float) -> PreviewOutcome:
    """Return the outcome of a job that is not in a kept cluster state, which stays unchanged.

    Raises:
        InvalidInput: As ``preview``.
    """
    queued = replace(job, activity=Activity.QUEUED, held=(), is_nominated=False, nominated=())
    state.put(queued)
    try:
        plan = decide_on(state, now_s)
        within = _covered(state, queued)
    finally:
        state.drop(queued.id)
    return PreviewOutcome(
        starts=_starts(state, queued, plan),
        within_quota=within,
        over_quota=job.spec.gpus * job.spec.workers - within,
        reason=plan.reasons.get(job.id),
    )


def _starts(state: ClusterState, job: JobFacts, plan: Plan) -> Starts:
    for command in plan.commands:
        if isinstance(command, Start) and command.job == job.id:
            return "after-reclaim" if command.after else "now"
    # A node that an administrator closed will be opened again.
    closed = {node.name for node in state.nodes if node.closed}
    opened = replace(job, barred=job.barred - closed) if closed else job
    ever = _could_run_on(state.nodes, state.topology, state.tree, opened)
    return "waits" if ever else "never"


def could_ever_run(snapshot: Snapshot, job: JobFacts) -> bool:
    """Return whether the job could run in an empty pool with all nodes ready."""
    return _could_run_on(snapshot.nodes, snapshot.topology, Tree(snapshot.projects), job)


def _could_run_on(
    nodes: Sequence[Node], topology: Sequence[str], tree: Tree, job: JobFacts
) -> bool:
    empty = FreeCapacity([replace(node, ready=True) for node in nodes], topology)
    return possible(job_info_of(job, 0, tree), empty, tree)


def _covered(state: ClusterState, job: JobFacts) -> int:
    """Return how many of the job's GPUs are guaranteed beside its project's holdings (R5a)."""
    asked = job.spec.gpus * job.spec.workers
    branch = state.tree.of(job.project)
    quota = state.usage.guarantees[branch.index][0]
    if quota is None:
        return asked
    return min(asked, max(0, quota - state.ledger.held[branch.index].gpus) // WHOLE_GPU)
