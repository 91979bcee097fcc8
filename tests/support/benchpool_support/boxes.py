"""Small pools in a few words, for tests of the core.

>>> pool = box(4, [project("susan", 2)], [running("a", "susan", 3), queued("b", "susan")])
>>> [job.activity.value for job in pool.jobs]
['running', 'queued']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)
from benchpool_support.asking import asking


def node(name: str, gpus: int, **facts: Any) -> Node:
    """Return a node with GPUs ``name/0``, ``name/1`` and so on."""
    return Node(NodeName(name), tuple(GpuId(f"{name}/{i}") for i in range(gpus)), **facts)


def project(name: str, quota: int | None = 0, **facts: Any) -> Project:
    """Return a project."""
    if "parent" in facts:
        facts["parent"] = ProjectName(facts["parent"])
    return Project(ProjectName(name), quota=quota, **facts)


def queued(name: str, project: str, gpus: int = 1, **facts: Any) -> JobFacts:
    """Return a waiting job; by default its minimum gang is all of its workers."""
    facts.setdefault("min_workers", facts.get("workers", 1))
    return JobFacts(JobId(name), ProjectName(project), **asking(facts, gpus=gpus))


def running(name: str, project: str, gpus: int = 1, on: str = "box", **facts: Any) -> JobFacts:
    """Return a running job; ``pool_of`` assigns it GPUs on the node ``on``."""
    job = queued(name, project, gpus, activity=Activity.RUNNING, **facts)
    workers = tuple(Worker(NodeName(on), ()) for _ in range(job.spec.workers))
    return replace(job, held=workers)


def leaving(name: str, project: str, gpus: int = 1, on: str = "box", **facts: Any) -> JobFacts:
    """Return a job that has its notice and still holds its GPUs."""
    return replace(running(name, project, gpus, on, **facts), activity=Activity.TERMINATING)


def pool_of(
    nodes: Sequence[Node],
    projects: Sequence[Project],
    jobs: Sequence[JobFacts],
    policy: Policy | None = None,
) -> Snapshot:
    """Return a pool in which each running job has GPUs of the nodes that it names, in order."""
    free = {n.name: list(n.gpus) for n in nodes}
    seated = []
    for job in jobs:
        workers = []
        for worker in job.held:
            workers.append(Worker(worker.node, tuple(free[worker.node][: job.spec.gpus])))
            del free[worker.node][: job.spec.gpus]
        seated.append(replace(job, held=tuple(workers)))
    return Snapshot(tuple(nodes), tuple(projects), tuple(seated), policy or Policy())


def box(
    gpus: int, projects: Sequence[Project], jobs: Sequence[JobFacts], policy: Policy | None = None
) -> Snapshot:
    """Return a pool of one machine named ``box``."""
    return pool_of([node("box", gpus)], projects, jobs, policy)
