"""Tiny full pools with one claim, small enough to try every set of victims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.model import (
    Activity,
    JobFacts,
    JobId,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)
from benchpool_support.boxes import node
from benchpool_support.reference.holdings import within_bounds
from benchpool_support.reference.places import spaces

CLAIM = JobId("claim")
OWNER, DEPARTMENT = ProjectName("owner"), ProjectName("department")


@st.composite
def tiny_claims(
    draw: st.DrawFn, *, equally_fair: bool = False, equal_progress: bool = False
) -> Snapshot:
    """Draw at most three nodes and six running jobs, and one waiting job: ``claim``.

    Args:
        equally_fair: All running jobs have one project and one priority, and cannot shrink. Lawful
            sets of victims then differ only in their losses.
        equal_progress: In addition, each of their GPUs loses as much, and they belong to two users.
            Many sets then lose as much.
    """
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    projects = [_owner(draw)] if equally_fair else _projects(draw)
    guests = ["guest"] if equally_fair else [p.name for p in projects if p.name != DEPARTMENT]
    if equally_fair:
        projects.append(Project(ProjectName("guest"), quota=draw(st.sampled_from([0, 0, 1]))))
    pool = Snapshot(
        nodes=tuple(node(f"n{i}", size) for i, size in enumerate(sizes)),
        projects=tuple(projects),
        jobs=(),
        policy=Policy(min_runtime_s=0.0 if equally_fair else draw(st.sampled_from([0.0, 60.0]))),
    )
    for number in range(draw(st.integers(1, 6))):
        job = _running(draw, f"j{number}", guests, plain=equally_fair)
        if equal_progress:
            user = draw(st.sampled_from(["ann", "ben"]))
            job = replace(job, since_checkpoint_s=30.0, checkpoints=True, user=user)
        if (seated := _seated(draw, pool, job)) is not None:
            pool = replace(pool, jobs=(*pool.jobs, seated))
    workers = draw(st.sampled_from([1, 1, 1, 2]))
    claim = JobFacts(
        id=CLAIM,
        project=OWNER,
        spec=JobSpec(
            gpus=draw(st.integers(1, 4)),
            workers=workers,
            min_workers=workers,
            priority=draw(st.sampled_from([50, 60])),
        ),
    )
    return replace(pool, jobs=(*pool.jobs, claim))


def _owner(draw: st.DrawFn) -> Project:
    return Project(OWNER, quota=draw(st.integers(1, 6)), weight=draw(st.sampled_from([0.0, 1.0])))


def _projects(draw: st.DrawFn) -> list[Project]:
    """Draw the claimant's project and some others, perhaps in one department with it."""
    found = [_owner(draw)]
    if draw(st.booleans()):
        found = [
            Project(DEPARTMENT, quota=draw(st.sampled_from([2, 4, None]))),
            replace(found[0], parent=DEPARTMENT),
        ]
    for i in range(draw(st.integers(1, 3))):
        inside = len(found) > 1 and draw(st.booleans())
        found.append(
            Project(
                ProjectName(f"guest{i}"),
                parent=DEPARTMENT if inside and found[0].name == DEPARTMENT else None,
                quota=draw(st.sampled_from([0, 0, 1, 2])),
                limit=draw(st.sampled_from([None, None, 4])),
                weight=draw(st.sampled_from([None, 0.0, 1.0])),
            )
        )
    return found


def _running(draw: st.DrawFn, name: str, projects: Sequence[str], *, plain: bool) -> JobFacts:
    workers = draw(st.sampled_from([1, 1, 1, 2, 3]))
    ran_s = 600.0 if plain else draw(st.sampled_from([30.0, 600.0, 3600.0]))
    return JobFacts(
        id=JobId(name),
        project=ProjectName(draw(st.sampled_from(projects))),
        spec=JobSpec(
            gpus=draw(st.sampled_from([1, 1, 2, 3])),
            workers=workers,
            min_workers=workers if plain else draw(st.integers(1, workers)),
            priority=50 if plain else draw(st.sampled_from([40, 50, 50])),
            preemptible=plain or draw(st.integers(0, 5)) > 0,
        ),
        activity=Activity.RUNNING,
        ran_s=ran_s,
        since_checkpoint_s=draw(st.sampled_from([0.0, 10.0, 30.0, 200.0, 500.0])),
        checkpoints=False if not plain else draw(st.booleans()),
    )


def _seated(draw: st.DrawFn, pool: Snapshot, job: JobFacts) -> JobFacts | None:
    """Return the job on nodes with free GPUs, from a random node on, or None if it does not fit."""
    if not within_bounds(pool, job, job.spec.workers):
        return None
    taken = {gpu for other in pool.jobs for w in other.held for gpu in w.gpus}
    here = spaces(pool)
    first = draw(st.integers(0, len(here) - 1))
    held: list[Worker] = []
    for space in [*here[first:], *here[:first]]:
        free = [gpu for gpu in space.node.gpus if gpu not in taken]
        while len(free) >= job.spec.gpus and len(held) < job.spec.workers:
            held.append(Worker(space.node.name, tuple(free[: job.spec.gpus])))
            free = free[job.spec.gpus :]
    return replace(job, held=tuple(held)) if len(held) == job.spec.workers else None
