"""Random snapshots for property tests: nodes, a tree of projects, running and waiting jobs.

Each snapshot is legal: no GPU is held twice, limits hold, and non-preemptible work is within its
quota.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
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


@st.composite
def snapshots(draw: st.DrawFn, *, elastic: bool = False, max_nodes: int = 3) -> Snapshot:
    """Draw a pool that is partly in use."""
    nodes = draw(st.lists(_nodes(), min_size=1, max_size=max_nodes))
    nodes = [_named(node, f"n{i}") for i, node in enumerate(nodes)]
    projects = draw(_projects())
    parents = {project.parent for project in projects}
    leaves = [project.name for project in projects if project.name not in parents]
    drafts = draw(st.lists(_jobs(leaves, elastic=elastic), max_size=10))
    snapshot = Snapshot(
        nodes=tuple(nodes),
        projects=tuple(projects),
        jobs=(),
        policy=Policy(min_runtime_s=draw(st.sampled_from([0.0, 0.0, 60.0]))),
    )
    for number, draft in enumerate(drafts):
        job = replace(draft, id=JobId(f"j{number}"))
        if job.activity is not Activity.QUEUED:
            job = _seated(snapshot, job)
        snapshot = replace(snapshot, jobs=(*snapshot.jobs, job))
    return snapshot


@st.composite
def busy_snapshots(draw: st.DrawFn, *, elastic: bool = False, max_nodes: int = 3) -> Snapshot:
    """Draw a pool that is full of preemptible work, with waiting claims that preempt much of it."""
    sizes = draw(st.lists(st.integers(3, 8), min_size=1, max_size=max_nodes))
    nodes = tuple(
        Node(NodeName(f"n{i}"), tuple(GpuId(f"n{i}/{g}") for g in range(size)))
        for i, size in enumerate(sizes)
    )
    projects = draw(_projects())
    parents = {project.parent for project in projects}
    leaves = [project.name for project in projects if project.name not in parents]
    snapshot = Snapshot(nodes=nodes, projects=tuple(projects), jobs=())
    running = draw(st.lists(_jobs(leaves, elastic=elastic), min_size=3, max_size=14))
    waiting = draw(st.lists(_jobs(leaves, elastic=elastic), min_size=1, max_size=5))
    for number, draft in enumerate([*running, *waiting]):
        job = replace(draft, id=JobId(f"j{number}"), activity=Activity.QUEUED)
        if number < len(running):
            seated = replace(
                job, activity=Activity.RUNNING, spec=job.spec.changed(preemptible=True)
            )
            job = _seated(snapshot, seated)
        snapshot = replace(snapshot, jobs=(*snapshot.jobs, job))
    return snapshot


@st.composite
def _nodes(draw: st.DrawFn) -> Node:
    gpus = draw(st.integers(0, 6))
    return Node(
        name=NodeName("n"),
        gpus=tuple(GpuId(str(i)) for i in range(gpus)),
        kept=draw(st.sampled_from([0, 0, 0, 1])),
        ready=draw(st.sampled_from([True, True, True, False])),
    )


def _named(node: Node, name: str) -> Node:
    return replace(
        node, name=NodeName(name), gpus=tuple(GpuId(f"{name}/{gpu}") for gpu in node.gpus)
    )


@st.composite
def _projects(draw: st.DrawFn) -> list[Project]:
    parents = draw(st.integers(0, 2))
    projects = [_project(draw, f"d{i}", None) for i in range(parents)]
    for i in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from([None, *(p.name for p in projects[:parents])]))
        projects.append(_project(draw, f"p{i}", parent))
    return projects


def _project(draw: st.DrawFn, name: str, parent: ProjectName | None) -> Project:
    return Project(
        name=ProjectName(name),
        parent=parent,
        quota=draw(st.sampled_from([0, 0, 1, 2, 3, 4, None])),
        limit=draw(st.sampled_from([None, None, None, 2, 4, 6])),
        weight=draw(st.sampled_from([None, 0.0, 1.0, 2.0, 3.0])),
        priority=draw(st.sampled_from([0, 0, 1])),
    )


@st.composite
def _jobs(draw: st.DrawFn, leaves: list[ProjectName], *, elastic: bool) -> JobFacts:
    workers = draw(st.sampled_from([1, 1, 1, 2, 3]))
    least = draw(st.integers(1, workers)) if elastic else workers
    return JobFacts(
        id=JobId("j"),
        project=draw(st.sampled_from(leaves)),
        spec=JobSpec(
            gpus=draw(st.sampled_from([1, 1, 2, 3, 4])),
            workers=workers,
            min_workers=least,
            priority=draw(st.sampled_from([40, 50, 50, 60])),
            preemptible=draw(st.sampled_from([True, True, True, False])),
        ),
        user=draw(st.sampled_from(["ann", "ben"])),
        activity=draw(
            st.sampled_from(
                [Activity.QUEUED, Activity.RUNNING, Activity.RUNNING, Activity.TERMINATING]
            )
        ),
        ran_s=draw(st.sampled_from([0.0, 30.0, 3600.0])),
        preemptions_last_hour=draw(st.sampled_from([0, 0, 0, 4])),
    )


def _seated(snapshot: Snapshot, job: JobFacts) -> JobFacts:
    """Place the job's minimum gang if space and rules allow it; else let it wait."""
    queued = replace(job, activity=Activity.QUEUED, ran_s=0.0)
    if not _allowed(snapshot, job):
        return queued
    taken = {gpu for other in snapshot.jobs for worker in other.held for gpu in worker.gpus}
    held: list[Worker] = []
    for node in snapshot.nodes:
        free = [gpu for gpu in node.gpus if gpu not in taken]
        while len(free) >= job.spec.gpus and len(held) < job.spec.least_workers:
            held.append(Worker(node.name, tuple(free[: job.spec.gpus])))
            free = free[job.spec.gpus :]
    if len(held) < job.spec.least_workers:
        return queued
    return replace(job, held=tuple(held))


def _allowed(snapshot: Snapshot, job: JobFacts) -> bool:
    projects = {project.name: project for project in snapshot.projects}
    asked = job.spec.gpus * job.spec.least_workers
    name: ProjectName | None = job.project
    while name is not None:
        project = projects[name]
        every, firm = held_below(snapshot, name)
        if project.limit is not None and every + asked > project.limit:
            return False
        if not job.spec.preemptible and project.quota is not None and firm + asked > project.quota:
            return False
        name = project.parent
    return True


def held_below(snapshot: Snapshot, name: ProjectName) -> tuple[int, int]:
    """Return the GPUs held in a project and its descendants: all, and those of firm jobs."""
    parents = {project.name: project.parent for project in snapshot.projects}
    every = firm = 0
    for job in snapshot.jobs:
        above: ProjectName | None = job.project
        while above is not None and above != name:
            above = parents[above]
        if above == name:
            gpus = sum(len(worker.gpus) for worker in job.held)
            every += gpus
            firm += 0 if job.spec.preemptible else gpus
    return every, firm
