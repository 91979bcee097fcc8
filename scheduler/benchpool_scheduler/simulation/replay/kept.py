"""The interface of the kept board over whole snapshots, for as long as the core keeps none."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.core.model import Job, JobId, Node, Plan, Policy, Project, Snapshot
from benchpool_scheduler.core.plan import decide


class Board:
    """The pool as facts."""

    def __init__(self, nodes: Sequence[Node], projects: Sequence[Project], policy: Policy) -> None:
        self.nodes, self.projects, self.policy = tuple(nodes), tuple(projects), policy
        self.jobs: dict[JobId, Job] = {}

    def put(self, job: Job) -> None:
        """The job is new or has changed; then it keeps its age."""
        self.jobs[job.id] = job

    def drop(self, job: JobId) -> None:
        """It ended."""
        self.jobs.pop(job, None)


def decide_on(board: Board, now_s: float, *, explain: bool = True) -> Plan:
    """Decide what to do now."""
    jobs = tuple(board.jobs.values())
    return decide(Snapshot(board.nodes, board.projects, jobs, board.policy, now_s=now_s))
