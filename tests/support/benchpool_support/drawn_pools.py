"""Random pools by number, fast enough for soaks over very many of them.

Pool ``n`` is always the same. Most kinds have a history: the core placed a first wave of jobs, some
of them ended, all ran for a while, and a second wave waits. So running jobs are placed as in a real
pool, with gaps. In *scattered* pools running jobs are placed at random, whatever their priority and
their project's quota, as after a change of the configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

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
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after

MODELS = ("A100", "V100")
PASSES = 3
"""Number of passes after which the first wave is placed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Properties of the pools of a kind.

    Attributes:
        models: Nodes are of two GPU models, and jobs may accept one, or both in an order.
        levels: Nodes are in racks; jobs may require or prefer one.
        parts: Jobs may request a part of a GPU.
        elastic: Gangs may run with fewer workers than requested.
        scattered: Running jobs were placed at random.
        gangs: Numbers of workers of a job to draw from.
    """

    models: bool = False
    levels: bool = False
    parts: bool = False
    elastic: bool = False
    scattered: bool = False
    gangs: tuple[int, ...] = (1, 1, 1, 2, 3)


KINDS = {
    "plain": Kind(),
    "models": Kind(models=True, gangs=(1, 1, 3)),
    "elastic": Kind(elastic=True, gangs=(1, 2, 3, 4)),
    "levels": Kind(levels=True, gangs=(1, 2, 3)),
    "parts": Kind(parts=True),
    "elastic-models": Kind(models=True, elastic=True, gangs=(1, 2, 3)),
    "scattered": Kind(elastic=True, scattered=True, gangs=(1, 1, 2, 2, 3, 4)),
    "scattered-models": Kind(models=True, elastic=True, scattered=True, gangs=(1, 1, 2, 2, 3, 4)),
    "everything": Kind(models=True, levels=True, parts=True, elastic=True),
}
"""Kinds of pools by name."""


def drawn_pool(number: int, kind: Kind) -> Snapshot:
    """Return the pool with this number."""
    draw = Random(number)
    if kind.scattered:
        return _scattered(draw, kind)
    topology = ("rack",) if kind.levels else ()
    pool = Snapshot(
        nodes=tuple(_node(draw, i, kind) for i in range(draw.randint(1, 5))),
        projects=tuple(_projects(draw)),
        jobs=(),
        policy=Policy(),
        topology=topology,
    )
    parents = {project.parent for project in pool.projects}
    names = [project.name for project in pool.projects if project.name not in parents]
    first = [_job(draw, f"a{i}", names, kind) for i in range(draw.randint(1, 10))]
    pool = replace(pool, jobs=tuple(first))
    for _ in range(PASSES):
        pool = after(pool, decide(pool))
    stay = [_aged(draw, job) for job in pool.jobs if draw.random() > 0.25]
    second = [_job(draw, f"b{i}", names, kind) for i in range(draw.randint(1, 8))]
    return replace(pool, jobs=(*stay, *second))


def _node(draw: Random, number: int, kind: Kind) -> Node:
    name = f"n{number}"
    return Node(
        name=NodeName(name),
        gpus=tuple(GpuId(f"{name}/{i}") for i in range(draw.choice((1, 2, 2, 3, 4, 4, 8)))),
        gpu_model=draw.choice(MODELS) if kind.models else None,
        labels={"rack": f"r{draw.randint(0, 1)}"} if kind.levels else {},
        shared=kind.parts,
    )


def _projects(draw: Random) -> list[Project]:
    above = [Project(ProjectName("d"), quota=draw.choice((2, 4, 8, None)))] * draw.randint(0, 1)
    return [
        *above,
        *(
            Project(
                name=ProjectName(f"p{i}"),
                parent=draw.choice((None, *(one.name for one in above))),
                quota=draw.choice((0, 0, 1, 2, 3, 4, 8)),
                limit=draw.choice((None, None, None, None, 3, 6)),
                weight=draw.choice((None, None, 0.0, 1.0, 2.0)),
                priority=draw.choice((0, 0, 0, 1)),
            )
            for i in range(draw.randint(1, 4))
        ),
    ]


def _job(draw: Random, name: str, projects: list[ProjectName], kind: Kind) -> JobFacts:
    part = draw.choice((250, 300, 500, 700)) if kind.parts and draw.random() < 0.4 else None
    workers = 1 if part else draw.choice(kind.gangs)
    models = draw.choice(((), MODELS[:1], MODELS, MODELS[::-1])) if kind.models else ()
    return JobFacts(
        id=JobId(name),
        project=draw.choice(projects),
        spec=JobSpec(
            gpus=1 if part else draw.choice((1, 1, 1, 2, 2, 3, 4)),
            workers=workers,
            min_workers=draw.randint(1, workers) if kind.elastic else workers,
            priority=draw.choice((40, 50, 50, 50, 60)),
            preemptible=draw.random() > 0.1,
            gpu_models=models,
            required_level=draw.choice((None, None, "rack")) if kind.levels else None,
            preferred_level=draw.choice((None, None, "rack")) if kind.levels else None,
        ),
        user=draw.choice(("ann", "ben")),
        fraction=part,
        checkpoints=draw.random() > 0.2,
    )


def _aged(draw: Random, job: JobFacts) -> JobFacts:
    """Return a job of the first wave after it ran for a while."""
    if job.activity is not Activity.RUNNING:
        return job
    ran_s = draw.choice((30.0, 600.0, 3600.0, 9000.0))
    saved_s = draw.choice((0.0, 30.0)) if job.checkpoints else None
    return replace(
        job, ran_s=ran_s, since_checkpoint_s=saved_s, preemptions_last_hour=0, is_nominated=False
    )


def _scattered(draw: Random, kind: Kind) -> Snapshot:
    """Return a pool whose running jobs were placed at random."""
    nodes = tuple(_large_node(draw, i, kind) for i in range(draw.randint(1, 6)))
    projects = _projects_beside(draw, sum(len(node.gpus) for node in nodes))
    parents = {project.parent for project in projects}
    names = [project.name for project in projects if project.name not in parents]
    free = {node.name: list(node.gpus) for node in nodes}
    models = {node.name: node.gpu_model for node in nodes}
    jobs: list[JobFacts] = []
    for i in range(draw.randint(2, 16)):
        job = _elastic_job(draw, f"j{i}", names, kind)
        jobs.append(_placed(draw, job, free, models) if draw.random() < 0.5 else job)
    policy = Policy(long_run_s=draw.choice((0.0, 7200.0)))
    return Snapshot(nodes=nodes, projects=tuple(projects), jobs=tuple(jobs), policy=policy)


def _large_node(draw: Random, number: int, kind: Kind) -> Node:
    gpus = draw.choice((1, 2, 2, 3, 4, 4, 5, 7, 8))
    return Node(
        name=NodeName(f"n{number}"),
        gpus=tuple(GpuId(f"n{number}/{i}") for i in range(gpus)),
        gpu_model=draw.choice(MODELS) if kind.models else None,
    )


def _projects_beside(draw: Random, total: int) -> list[Project]:
    """Return one to four projects, or two levels of them, for a pool of ``total`` GPUs."""
    if draw.random() < 0.65:
        return [_project(draw, f"p{i}", None, total, total) for i in range(draw.randint(1, 4))]
    found: list[Project] = []
    for i in range(draw.randint(1, 2)):
        above = _project(draw, f"d{i}", None, total // 2 + 1, total)
        below = range(draw.randint(1, 3))
        found += [above, *(_project(draw, f"d{i}-{k}", above, total // 3, total) for k in below)]
    return found


def _project(draw: Random, name: str, above: Project | None, quota: int, total: int) -> Project:
    return Project(
        name=ProjectName(name),
        parent=None if above is None else above.name,
        quota=draw.choice((0, draw.randint(0, quota), draw.randint(0, quota // 2))),
        limit=draw.choice((None, None, None, total // 2 + 1)),
        weight=draw.choice((0.0, 1.0, 1.0, 2.0)),
        priority=draw.choice((0, 0, 0, 1)),
    )


def _elastic_job(draw: Random, name: str, projects: list[ProjectName], kind: Kind) -> JobFacts:
    workers = draw.choice(kind.gangs)
    models = draw.choice(((), MODELS[:1], MODELS)) if kind.models else ()
    return JobFacts(
        id=JobId(name),
        project=draw.choice(projects),
        spec=JobSpec(
            gpus=draw.choice((1, 1, 1, 2, 2, 3, 4)),
            workers=workers,
            min_workers=draw.choice((1, workers, draw.randint(1, workers))),
            priority=draw.choice((50, 50, 50, 60, 70, 80)),
            preemptible=draw.random() > 0.07,
            gpu_models=models,
        ),
        user=draw.choice(("ann", "ben")),
        checkpoints=draw.random() > 0.2,
    )


def _placed(
    draw: Random,
    job: JobFacts,
    free: dict[NodeName, list[GpuId]],
    models: dict[NodeName, str | None],
) -> JobFacts:
    """Return the job running on free GPUs of random nodes, or queued if it does not fit."""
    spec, held = job.spec, list[Worker]()
    names = [name for name in free if not spec.gpu_models or models[name] in spec.gpu_models]
    for _ in range(draw.randint(spec.least_workers, spec.workers)):
        draw.shuffle(names)
        name = next((name for name in names if len(free[name]) >= spec.gpus), None)
        if name is not None:
            held.append(Worker(name, tuple(free[name][: spec.gpus])))
            del free[name][: spec.gpus]
    if len(held) < spec.least_workers:
        for worker in held:
            free[worker.node].extend(worker.gpus)
        return job
    return _aged(draw, replace(job, activity=Activity.RUNNING, held=tuple(held)))
