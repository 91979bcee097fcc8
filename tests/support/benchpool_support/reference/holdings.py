"""Holdings of a snapshot, summed from its jobs; resources are GPUs, CPU cores and GiB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from benchpool_scheduler.core.model import (
    Activity,
    Bound,
    JobFacts,
    JobId,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)

Amounts = tuple[Fraction, Fraction, Fraction]
"""GPUs, CPU cores and memory in GiB."""

Bounds = tuple[Fraction | None, Fraction | None, Fraction | None]

NOTHING: Amounts = (Fraction(0), Fraction(0), Fraction(0))
GPUS, CPUS, MEMORY = range(3)


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Return the sum."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def times(amount: Amounts, count: int) -> Amounts:
    """Return the amount ``count`` times."""
    return amount[0] * count, amount[1] * count, amount[2] * count


def need(job: JobFacts) -> Amounts:
    """Return the resources of one worker of the job."""
    gpus = Fraction(job.spec.gpus) if job.fraction is None else Fraction(job.fraction, 1000)
    return gpus, _exact(job.spec.cpus, 1000), _exact(job.spec.memory_gib, 1024)


def _exact(value: float, parts: int) -> Fraction:
    return Fraction(round(value * parts), parts)


def bounds(project: Project, kind: str) -> Bounds:
    """Return the ``quota`` or ``limit`` of every resource, or None if it has none."""
    gpus = getattr(project, kind)
    cpus: float | None = getattr(project.cpus, kind)
    memory: float | None = getattr(project.memory_gib, kind)
    return (
        None if gpus is None else Fraction(gpus),
        None if cpus is None else _exact(cpus, 1000),
        None if memory is None else _exact(memory, 1024),
    )


def weights(project: Project) -> tuple[Fraction, Fraction, Fraction]:
    """Return the weight for every resource: the quota unless set, 1 if the quota is unlimited."""
    return (
        _weight(Bound(project.quota, project.limit, project.weight)),
        _weight(project.cpus),
        _weight(project.memory_gib),
    )


def _weight(bound: Bound) -> Fraction:
    if bound.weight is not None:
        return Fraction(bound.weight)
    return Fraction(1) if bound.quota is None else Fraction(bound.quota)


def named(snapshot: Snapshot, name: str) -> Project:
    """Return the project with this name."""
    return next(project for project in snapshot.projects if project.name == name)


def job_named(snapshot: Snapshot, name: str) -> JobFacts:
    """Return the job with this name."""
    return next(job for job in snapshot.jobs if job.id == name)


def path(snapshot: Snapshot, name: ProjectName) -> list[ProjectName]:
    """Return a project with all its ancestors, the top first."""
    found = [name]
    while (parent := named(snapshot, found[-1]).parent) is not None:
        found.append(parent)
    return found[::-1]


def children(snapshot: Snapshot, parent: ProjectName | None) -> list[Project]:
    """Return the direct children of a project, or the top projects, oldest first."""
    return [project for project in snapshot.projects if project.parent == parent]


def leaves(snapshot: Snapshot) -> list[ProjectName]:
    """Return the projects that may hold jobs."""
    parents = {project.parent for project in snapshot.projects}
    return [project.name for project in snapshot.projects if project.name not in parents]


def occupied(job: JobFacts) -> tuple[Worker, ...]:
    """Return a job's workers and the places that are promised to it."""
    return (*job.held, *(job.nominated if job.is_nominated or job.held else ()))


def _sum(snapshot: Snapshot, workers: Iterable[tuple[JobFacts, int]]) -> dict[ProjectName, Amounts]:
    total = {project.name: NOTHING for project in snapshot.projects}
    for job, count in workers:
        for name in path(snapshot, job.project):
            total[name] = plus(total[name], times(need(job), count))
    return total


def held(snapshot: Snapshot) -> Mapping[ProjectName, Amounts]:
    """Return the resources that the running jobs of each project and its descendants hold."""
    running = (job for job in snapshot.jobs if job.activity is Activity.RUNNING)
    return _sum(snapshot, ((job, len(job.held)) for job in running))


def booked(snapshot: Snapshot, *, firm: bool = False) -> Mapping[ProjectName, Amounts]:
    """Return the resources that count against limits: running, leaving and promised (R8).

    Args:
        firm: Count only non-preemptible jobs, as the quota does for them.
    """
    jobs = (job for job in snapshot.jobs if not (firm and job.spec.preemptible))
    return _sum(snapshot, ((job, len(occupied(job))) for job in jobs))


def within_bounds(snapshot: Snapshot, job: JobFacts, workers: int) -> bool:
    """Return whether more workers keep all limits, and the quota if they are firm (R8)."""
    return over_bounds(snapshot, job, workers) == []


def over_bounds(
    snapshot: Snapshot, job: JobFacts, workers: int
) -> list[tuple[str, ProjectName, int]]:
    """Return all exceeded bounds, the lowest level first: limit or quota, project, resource."""
    asked = times(need(job), workers)
    found: list[tuple[str, ProjectName, int]] = []
    for kind in ("limit", "quota"):
        if kind == "quota" and job.spec.preemptible:
            continue
        now = booked(snapshot, firm=kind == "quota")
        for name in reversed(path(snapshot, job.project)):
            for resource, bound in enumerate(bounds(named(snapshot, name), kind)):
                if bound is not None and now[name][resource] + asked[resource] > bound:
                    found.append((kind, name, resource))
    return found


def changed(snapshot: Snapshot, job: JobFacts) -> Snapshot:
    """Return the snapshot with another version of a job."""
    jobs = tuple(job if other.id == job.id else other for other in snapshot.jobs)
    return replace(snapshot, jobs=jobs)


def without(snapshot: Snapshot, lost: Mapping[JobId, Sequence[Worker]]) -> Snapshot:
    """Return the snapshot after jobs have lost workers; a job without workers is queued."""
    for name, workers in lost.items():
        job = job_named(snapshot, name)
        left = tuple(worker for worker in job.held if worker not in workers)
        activity = job.activity if left else Activity.QUEUED
        snapshot = changed(snapshot, replace(job, held=left, activity=activity))
    return snapshot


def totals(snapshot: Snapshot) -> dict[ProjectName, int]:
    """Return the GPUs that the running jobs of each project hold."""
    return {name: int(amounts[GPUS]) for name, amounts in held(snapshot).items()}
