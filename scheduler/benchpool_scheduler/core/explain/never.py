"""Check whether a job could ever run, before it is accepted (R22)."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.core.capacity.feasibility import possible
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.explain.bindings import impossible
from benchpool_scheduler.core.jobs.job_info import job_info_of
from benchpool_scheduler.core.model import JobFacts, Node, Project, WaitReason


class EmptyPool:
    """An empty pool whose nodes all work.

    >>> from benchpool_scheduler.core.model import GpuId, JobId, NodeName, ProjectName
    >>> pool = EmptyPool([Node(NodeName("n"), (GpuId("g"),))], [Project(ProjectName("p"))])
    >>> pool.why_never(JobFacts(JobId("j"), ProjectName("p"))) is None
    True
    """

    def __init__(
        self, nodes: Sequence[Node], projects: Sequence[Project], topology: Sequence[str] = ()
    ) -> None:
        self._state = ClusterState(nodes, projects, topology=topology)

    def why_never(self, job: JobFacts) -> WaitReason | None:
        """Return why a job can never run, or None if it could.

        The job need not belong to the pool. Its smallest gang decides.

        Raises:
            InvalidInput: Its project may not hold jobs.
        """
        info = job_info_of(job, 0, self._state.tree)
        if possible(info, self._state.empty, self._state.tree):
            return None
        reason = impossible(self._state, info)
        self._state.never.clear()  # many such submissions must not fill the memory
        return reason
