"""Random snapshots with all features of a pool, for property tests.

Racks and zones, GPU models, CPUs and memory, benches, nodes that are not ready, trees of three
levels with bounds on every resource, past use, elastic gangs, non-preemptible jobs, leaving jobs,
protection. Each snapshot is legal: no GPU is held twice, and running work is within its limits and
quotas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.model import (
    Activity,
    Bound,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    UserUse,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.leaving import under_way
from benchpool_support.reference.holdings import leaves, occupied, within_bounds
from benchpool_support.reference.places import allowed

USERS = ("ann", "ben")
MODELS = ("A100", "V100")
TOPOLOGIES: tuple[tuple[str, ...], ...] = ((), ("rack",), ("zone", "rack"))


@dataclass(frozen=True, slots=True)
class Breadth:
    """Features that may be drawn.

    Attributes:
        resources: CPUs and memory count.
        models: Nodes and jobs have GPU models.
        levels: Nodes and jobs have topology levels.
        elastic: Gangs may run with fewer workers than requested.
        leaving: Jobs may have their notice.
        protected: Minimum run times and bounds on preemptions.
        past: Past use bends weights.
        firm: Jobs may be non-preemptible.
        benches: GPUs are reserved, nodes are not ready.
        limits: Projects may have limits.
        one_gpu: Every job is one worker with one GPU.
    """

    resources: bool = True
    models: bool = True
    levels: bool = True
    elastic: bool = True
    leaving: bool = True
    protected: bool = True
    past: bool = True
    firm: bool = True
    benches: bool = True
    limits: bool = True
    one_gpu: bool = False


EVERYTHING = Breadth()
PLAIN = Breadth(*[False] * 10)
"""Only GPUs, projects and gangs."""


@st.composite
def wide_snapshots(
    draw: st.DrawFn,
    breadth: Breadth = EVERYTHING,
    *,
    nodes: int = 4,
    running: int = 8,
    waiting: int = 5,
) -> Snapshot:
    """Draw a pool that is more or less in use, with waiting work."""
    topology = draw(st.sampled_from(TOPOLOGIES)) if breadth.levels else ()
    machines = [_node(draw, i, topology, breadth) for i in range(draw(st.integers(1, nodes)))]
    snapshot = Snapshot(
        nodes=tuple(machines),
        projects=tuple(_projects(draw, breadth)),
        jobs=(),
        policy=_policy(draw, breadth),
        topology=topology,
    )
    names = leaves(snapshot)
    if breadth.past:
        uses = [UserUse(u, p, draw(st.sampled_from([0.0, 500.0]))) for p in names for u in USERS]
        snapshot = replace(snapshot, users=tuple(uses))
    at_work, at_rest = draw(st.integers(0, running)), draw(st.integers(0, waiting))
    for number in range(at_work + at_rest):
        job = _job(draw, f"j{number}", names, topology, breadth)
        job = _seated(draw, snapshot, job) if number < at_work else queueing(job)
        snapshot = replace(snapshot, jobs=(*snapshot.jobs, job))
    return snapshot


@st.composite
def snapshots_under_way(draw: st.DrawFn, breadth: Breadth = EVERYTHING) -> Snapshot:
    """Draw a pool in the middle of a change: victims leave, and claimants hold promises."""
    pool = draw(wide_snapshots(breadth))
    return under_way(pool, decide(pool))


def _node(draw: st.DrawFn, number: int, topology: Sequence[str], breadth: Breadth) -> Node:
    name = f"n{number}"
    size = draw(st.integers(0 if breadth.benches else 1, 6))
    labels = {level: f"{level}{draw(st.integers(0, 1))}" for level in topology}
    if labels and draw(st.integers(0, 9)) == 0:
        labels.popitem()
    return Node(
        name=NodeName(name),
        gpus=tuple(GpuId(f"{name}/{i}") for i in range(size)),
        kept=draw(st.sampled_from([0, 0, 0, 1])) if breadth.benches else 0,
        gpu_model=draw(st.sampled_from([*MODELS, None])) if breadth.models else None,
        cpus=draw(st.sampled_from([None, 8.0, 16.0])) if breadth.resources else None,
        memory_gib=draw(st.sampled_from([None, 32.0])) if breadth.resources else None,
        labels=labels,
        ready=draw(st.integers(0, 9)) > 0 if breadth.benches else True,
    )


def _policy(draw: st.DrawFn, breadth: Breadth) -> Policy:
    return Policy(
        min_runtime_s=draw(st.sampled_from([0.0, 0.0, 60.0])) if breadth.protected else 0.0,
        usage_weight=draw(st.sampled_from([0.0, 1.0, 3.0])) if breadth.past else 0.0,
    )


def _projects(draw: st.DrawFn, breadth: Breadth) -> list[Project]:
    """Draw a tree of up to three levels, parents before their children."""
    departments = [_project(draw, f"d{i}", None, breadth) for i in range(draw(st.integers(0, 2)))]
    teams = [
        _project(draw, f"t{i}", draw(st.sampled_from(departments)).name, breadth)
        for i in range(draw(st.integers(0, 1)) if departments else 0)
    ]
    above = [None, *(p.name for p in [*departments, *teams])]
    projects = [
        _project(draw, f"p{i}", draw(st.sampled_from(above)), breadth)
        for i in range(draw(st.integers(1, 4)))
    ]
    return [*departments, *teams, *projects]


def _project(draw: st.DrawFn, name: str, parent: ProjectName | None, breadth: Breadth) -> Project:
    return Project(
        name=ProjectName(name),
        parent=parent,
        quota=draw(st.sampled_from([0, 0, 1, 2, 3, 4, 8, None])),
        limit=draw(st.sampled_from([None, None, None, 2, 4, 6])) if breadth.limits else None,
        weight=draw(st.sampled_from([None, 0.0, 1.0, 2.0, 3.0])),
        priority=draw(st.sampled_from([0, 0, 1])),
        cpus=_bound(draw, breadth),
        memory_gib=_bound(draw, breadth),
        min_runtime_s=draw(st.sampled_from([None, None, 0.0, 60.0])) if breadth.protected else None,
        used_gpu_s=draw(st.sampled_from([0.0, 100.0, 300.0])) if breadth.past else 0.0,
    )


def _bound(draw: st.DrawFn, breadth: Breadth) -> Bound:
    if not breadth.resources or draw(st.integers(0, 2)):
        return Bound()
    return Bound(
        quota=draw(st.sampled_from([None, 4.0, 8.0])),
        limit=draw(st.sampled_from([None, None, 16.0])) if breadth.limits else None,
        weight=draw(st.sampled_from([None, 0.0, 1.0])),
    )


def _job(
    draw: st.DrawFn,
    name: str,
    projects: Sequence[ProjectName],
    topology: Sequence[str],
    breadth: Breadth,
) -> JobFacts:
    workers = 1 if breadth.one_gpu else draw(st.sampled_from([1, 1, 1, 2, 3]))
    levels = (None, None, None, *topology, "node") if breadth.levels else (None,)
    states = [Activity.RUNNING, Activity.RUNNING, Activity.RUNNING]
    states += [Activity.TERMINATING] if breadth.leaving else []
    ran_s = draw(st.sampled_from([0.0, 30.0, 3600.0]))
    return JobFacts(
        id=JobId(name),
        project=draw(st.sampled_from(projects)),
        spec=JobSpec(
            gpus=1 if breadth.one_gpu else draw(st.sampled_from([1, 1, 1, 2, 3, 4])),
            workers=workers,
            min_workers=draw(st.integers(1, workers)) if breadth.elastic else workers,
            priority=draw(st.sampled_from([40, 50, 50, 60])),
            preemptible=draw(st.integers(0, 4)) > 0 if breadth.firm else True,
            cpus=draw(st.sampled_from([0.0, 0.0, 2.0, 4.5])) if breadth.resources else 0.0,
            memory_gib=draw(st.sampled_from([0.0, 0.0, 8.0])) if breadth.resources else 0.0,
            gpu_models=draw(st.sampled_from([(), (), ("A100",), ("V100", "A100")]))
            if breadth.models
            else (),
            required_level=draw(st.sampled_from(levels)),
            preferred_level=draw(st.sampled_from(levels)),
        ),
        user=draw(st.sampled_from(USERS)),
        activity=draw(st.sampled_from(states)),
        ran_s=ran_s,
        since_checkpoint_s=draw(st.sampled_from([None, 0.0, 30.0])) if ran_s > 30 else None,
        checkpoints=draw(st.integers(0, 4)) > 0,
        preemptions_last_hour=draw(st.sampled_from([0, 0, 0, 4])) if breadth.protected else 0,
    )


@st.composite
def a_job(
    draw: st.DrawFn,
    name: str,
    projects: Sequence[ProjectName],
    topology: Sequence[str],
    breadth: Breadth,
) -> JobFacts:
    """Draw a job of one of the projects; it holds nothing yet."""
    return _job(draw, name, projects, topology, breadth)


def queueing(job: JobFacts) -> JobFacts:
    """Return the job in its state while it waits."""
    return replace(job, activity=Activity.QUEUED, held=(), ran_s=0.0, since_checkpoint_s=None)


def _seated(draw: st.DrawFn, snapshot: Snapshot, job: JobFacts) -> JobFacts:
    """Place some workers of the job if space and rules allow it; else let it wait."""
    size = draw(st.integers(job.spec.least_workers, job.spec.workers))
    if not within_bounds(snapshot, job, size):
        return queueing(job)
    taken = {gpu for other in snapshot.jobs for w in occupied(other) for gpu in w.gpus}
    for choice in allowed(snapshot, queueing(job)):
        held: list[Worker] = []
        for space in choice:
            free = [gpu for gpu in space.node.gpus if gpu not in taken]
            for _ in range(min(space.slots(job), size - len(held))):
                held.append(Worker(space.node.name, tuple(free[: job.spec.gpus])))
                free = free[job.spec.gpus :]
        if len(held) == size:
            return replace(job, held=tuple(held))
    return queueing(job)
