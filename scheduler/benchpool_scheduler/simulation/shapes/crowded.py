"""A pool in which no job can start, for every kind of reason at once (``cycle``, ``event``).

It has N nodes of 8 GPUs, 4N running jobs and 10N waiting jobs. Twenty projects under four parents
have five users each, sizes 1, 2, 4 and 8, gangs, priorities and time limits. No job can start, for
these reasons:

- Every project holds exactly its quota, so that none may claim anything (R15, R16). Two projects
  are exceptions and hold more, so that a third one holds less. The jobs of the first have just
  started (R19), and the jobs of the second are not preemptible.
- One twentieth of the nodes, of another model, have a few free GPUs. The jobs for that model need
  more of them on one node or at the same time (R10), or a limit or quota blocks them (R8). The
  jobs that run there cannot move, as they make no checkpoints.
- Inside a project the waiting jobs have no higher priority than the running ones.

Everything is drawn from fixed sequences: the same N gives the same pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle as endless

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)

GPUS, CPUS, MEMORY_GIB = 8, 128.0, 1024.0
FULL, HOLED, ABSENT = "A100", "V100", "T4"
"""GPU models of the full nodes, of the nodes with free GPUs, and of the node that is not ready."""

LAYOUTS = (
    (4, 2, 1, 1),
    (8,),
    (2, 2, 2, 2),
    (1, 1, 1, 1, 1, 1, 1, 1),
    (4, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 1, 1, 1),
    (2, 2, 1, 1, 1, 1),
    (4, 4),
)
"""Sizes of the workers on a full node, in rotation."""
HOLES = ((4, 2), (4, 2, 1))
"""Sizes of the workers on nodes with 2 free GPUs and with 1 free GPU, in rotation."""

PARENTS = tuple(ProjectName(f"division{n}") for n in range(4))
LEAVES = tuple(ProjectName(f"team{n}") for n in range(20))
UNDER, OVER, HARD, SPARE = LEAVES[0], LEAVES[5], LEAVES[6], LEAVES[10]
"""The project below its quota, the two projects above theirs, and the owner of the free GPUs."""
FIRM = LEAVES[7:10]
"""Projects with non-preemptible work, all under the parent that holds more than its quota."""
LIMITED = LEAVES[15:20]
"""Projects of the parent that is at its limit; three of them are at their own limit too."""

OWED = {OVER: 4, HARD: 12}
"""Maximum GPUs that two projects hold beyond their quotas while another project lacks them."""


def crowded(count: int) -> Snapshot:
    """Return the pool with this number of nodes, at least 20."""
    nodes = _nodes(count)
    running = _running(nodes, 4 * count)
    held, free = Counter[ProjectName](), sum(len(n.gpus) for n in nodes if n.ready)
    for job in running:
        held[job.project] += job.spec.gpus * len(job.held)
    projects = _projects(held, free - held.total())
    return Snapshot(
        nodes=nodes,
        projects=projects,
        jobs=(*running, *_waiting(10 * count, count)),
        topology=("zone", "rack"),
    )


def first_to_end(snapshot: Snapshot) -> JobId:
    """Return the job whose end is the event: it fills a node, and its project has waiting jobs."""
    return next(
        job.id
        for job in snapshot.jobs
        if job.held
        and job.spec.gpus * len(job.held) == GPUS
        and job.project not in (UNDER, OVER, HARD, SPARE, *FIRM, *LIMITED)
    )


# --------------------------------------------------------------------------- nodes and projects


def _nodes(count: int) -> tuple[Node, ...]:
    holed = max(4, count // 20)
    models = [FULL] * (count - holed - 1) + [HOLED] * holed + [ABSENT]
    return tuple(
        Node(
            NodeName(f"n{number}"),
            tuple(GpuId(f"n{number}/{gpu}") for gpu in range(GPUS)),
            gpu_model=model,
            cpus=CPUS,
            memory_gib=MEMORY_GIB,
            labels={"zone": f"z{number // 128}", "rack": f"r{number // 16}"},
            ready=model != ABSENT,
        )
        for number, model in enumerate(models)
    )


def _projects(held: Counter[ProjectName], free: int) -> tuple[Project, ...]:
    quotas = {name: held[name] for name in LEAVES}
    for payer, most in OWED.items():
        owed = min(most, held[payer] // 2)
        quotas[UNDER] += owed
        quotas[payer] -= owed
    quotas[SPARE] += free
    leaves = [
        Project(
            name,
            PARENTS[number // 5],
            quota=quotas[name],
            limit=held[name] if name in LIMITED[:3] else None,
            weight=1.0 + number % 3,
            min_runtime_s=3600.0 if name == OVER else None,
        )
        for number, name in enumerate(LEAVES)
    ]
    below = [LEAVES[5 * number : 5 * number + 5] for number in range(len(PARENTS))]
    parents = [
        Project(
            parent,
            quota=sum(quotas[name] for name in names),
            limit=sum(held[name] for name in names) if LIMITED[0] in names else None,
        )
        for parent, names in zip(PARENTS, below, strict=True)
    ]
    return (*parents, *leaves)


# --------------------------------------------------------------------------- running jobs


@dataclass(slots=True)
class _Seats:
    """Placed workers of one size that belong to one job."""

    size: int
    workers: list[Worker]
    model: str


def _running(nodes: Sequence[Node], wanted: int) -> list[JobFacts]:
    """Return exactly ``wanted`` jobs that hold all GPUs except the free ones."""
    seats = _merged(_divided(list(_seats(nodes)), wanted), wanted)
    owners = endless(LEAVES)
    return [_running_job(number, one, next(owners)) for number, one in enumerate(seats)]


def _seats(nodes: Sequence[Node]) -> Iterator[_Seats]:
    layouts: dict[str, Iterator[tuple[int, ...]]]
    layouts = {FULL: endless(LAYOUTS), HOLED: endless(HOLES), ABSENT: endless(((),))}
    for node in nodes:
        at = 0
        for size in next(layouts[node.gpu_model or ABSENT]):
            worker = Worker(node.name, node.gpus[at : at + size])
            yield _Seats(size, [worker], node.gpu_model or ABSENT)
            at += size


def _divided(seats: list[_Seats], wanted: int) -> list[_Seats]:
    """Halve the largest jobs until there are ``wanted``; few nodes give too few."""
    while len(seats) < wanted:
        one = max(seats, key=lambda seat: (seat.model == FULL, seat.size))
        half, (worker,) = one.size // 2, one.workers
        parts = (worker.gpus[:half], worker.gpus[half:])
        seats.remove(one)
        seats += [_Seats(half, [Worker(worker.node, part)], one.model) for part in parts]
    return seats


def _merged(seats: list[_Seats], wanted: int) -> list[_Seats]:
    """Merge jobs into gangs of two, three or four workers until ``wanted`` jobs are left."""
    kept: list[_Seats] = []
    open_gangs: dict[int, _Seats] = {}
    sizes = endless((2, 3, 4))
    most: dict[int, int] = {}
    surplus = len(seats) - wanted
    for one in seats:
        gang = open_gangs.get(one.size)
        if surplus > 0 and one.model == FULL and gang is not None:
            gang.workers += one.workers
            surplus -= 1
            if len(gang.workers) == most[one.size]:
                del open_gangs[one.size]
            continue
        kept.append(one)
        if one.model == FULL and len(kept) % 5 == 0 and one.size not in open_gangs:
            open_gangs[one.size], most[one.size] = one, next(sizes)
    return kept


def _running_job(number: int, seats: _Seats, owner: ProjectName) -> JobFacts:
    ran = 600.0 if owner == OVER else 3700.0 + number * 37 % 86_400
    return JobFacts(
        JobId(f"run{number}"),
        owner,
        spec=JobSpec(
            gpus=seats.size,
            workers=len(seats.workers),
            min_workers=len(seats.workers),
            priority=(50, 60, 70)[number % 3],
            preemptible=owner not in (HARD, *FIRM),
            cpus=_cpus(number) * seats.size,
            memory_gib=64.0 * seats.size,
            gpu_models=(seats.model,),
            time_limit_s=(None, 90_000, 180_000)[number % 3],
        ),
        user=f"{owner}-{number // 20 % 5}",
        activity=Activity.RUNNING,
        held=tuple(seats.workers),
        ran_s=ran,
        since_checkpoint_s=min(ran, 60.0 * (1 + number % 30)),
        checkpoints=seats.model == FULL,
    )


def _cpus(number: int) -> float:
    return (4.0, 8.0, 12.0, 16.0)[number * 7 % 4]


# --------------------------------------------------------------------------- waiting jobs


def _waiting(wanted: int, nodes: int) -> Iterator[JobFacts]:
    """Yield ``wanted`` queued jobs; every kind has its part of each hundred."""
    plain = [name for name in LEAVES if name not in (UNDER, OVER, HARD, SPARE, *FIRM, *LIMITED)]
    for number in range(wanted):
        yield _dressed(_kind(number * 61 % 100, number, plain, nodes), number)


def _kind(sort: int, number: int, plain: Sequence[ProjectName], nodes: int) -> JobFacts:
    """Return a job of a kind; 61 and 100 have no common factor, so all kinds occur."""
    name, size = JobId(f"wait{number}"), (1, 2, 4, 8)[number * 3 // 4 % 4]
    owner = plain[number % len(plain)]
    if sort < 45:  # the share is reached
        workers = (1, 1, 1, 2, 4)[number % 5]
        return JobFacts(name, owner, JobSpec(gpus=size, workers=workers, gpu_models=(FULL,)))
    if sort < 60:  # a limit, of its project or of the parent
        return JobFacts(name, LIMITED[number % 5], JobSpec(gpus=size))
    if sort < 70:  # not preemptible, over quota
        return JobFacts(name, FIRM[number % 3], JobSpec(gpus=size, preemptible=False))
    if sort < 77:  # enough is free, but not on one node
        return JobFacts(name, SPARE, JobSpec(gpus=4))
    if sort < 83:  # workers would fit, but not all at once
        return JobFacts(name, SPARE, JobSpec(gpus=2, workers=_gang_beyond_holes(nodes)))
    if sort < 88:  # the possible victims are protected
        return JobFacts(name, UNDER, JobSpec(gpus=size // 2 or 1, gpu_models=(FULL,)))
    if sort < 92:  # more than the victims could free
        return JobFacts(name, UNDER, JobSpec(gpus=8, workers=2, gpu_models=(FULL,)))
    if sort < 95:  # over quota already
        return JobFacts(name, OVER, JobSpec(gpus=size, gpu_models=(FULL,)))
    return _impossible(sort, name, owner, nodes)


def _gang_beyond_holes(nodes: int) -> int:
    """Return a number of workers of two GPUs that exceeds the number of places by one."""
    holed = max(4, nodes // 20)
    return (holed + 1) // 2 + 1


def _impossible(sort: int, name: JobId, owner: ProjectName, nodes: int) -> JobFacts:
    match sort:
        case 95:
            return JobFacts(name, owner, JobSpec(gpus=2 * GPUS))
        case 96:
            return JobFacts(name, owner, JobSpec(gpus=GPUS, workers=nodes + 1))
        case 97 | 98:
            return JobFacts(name, owner, JobSpec(gpu_models=("H100",)))
        case _:
            return JobFacts(name, owner, JobSpec(gpu_models=(ABSENT,)))


def _dressed(job: JobFacts, number: int) -> JobFacts:
    """Return the job with a user, a priority and other common attributes."""
    spec = job.spec.changed(
        priority=(10, 30, 50)[number % 3],
        cpus=_cpus(number) * job.spec.gpus,
        memory_gib=(16.0, 32.0, 64.0)[number % 3] * job.spec.gpus,
        preferred_level="rack" if job.spec.workers > 1 else None,
        time_limit_s=(None, 3600, 14_400, 86_400)[number % 4],
    )
    user = f"{job.project}-{number // 20 % 5}"
    return replace(job, spec=spec, user=user, waits_s=60.0 + number * 41 % 200_000)
