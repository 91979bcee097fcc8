"""Jobs as one pass sees them: with their place in the tree and exact amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.amounts import Amounts, exact
from benchpool_scheduler.core.model import Activity, Job, Snapshot
from benchpool_scheduler.core.tree import Branch, Tree
from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Work:
    """A job in a pass.

    Attributes:
        age: Position among all jobs; 0 is the oldest.
        branch: Its project. ``need``: what one worker takes.
        user: Whose turn it is, inside the project (R7).
    """

    job: Job
    age: int
    branch: Branch
    need: Amounts
    user: str

    @property
    def core(self) -> Amounts:
        """Return what its smallest gang takes."""
        return self.need.times(self.job.min_workers)

    @property
    def queued(self) -> bool:
        """Tell whether it waits for its first worker."""
        return self.job.activity is Activity.QUEUED

    @property
    def shape(self) -> tuple[object, ...]:
        """Return what decides whether it can start: jobs of one shape fare alike in a pass."""
        job = self.job
        return (
            self.branch.index,
            self.need,
            job.min_workers,
            job.preemptible,
            job.priority,
            job.gpu_models,
            job.required_level,
            job.preferred_level,
        )


def works_of(snapshot: Snapshot, tree: Tree) -> list[Work]:
    """Return the jobs of a snapshot, by age.

    Raises:
        InvalidInput: A job names no project that may hold jobs, or has impossible numbers.
    """
    return [_work(job, age, tree) for age, job in enumerate(snapshot.jobs)]


def _work(job: Job, age: int, tree: Tree) -> Work:
    branch = tree.of(job.project)
    if branch.children:
        raise InvalidInput(
            f"job {job.id} is in project {branch.name}, which has projects below it; "
            "put it into one of those"
        )
    if not 1 <= job.min_workers <= job.workers:
        raise InvalidInput(
            f"job {job.id} asks for {job.workers} workers and at least {job.min_workers}; "
            f"the least must be between 1 and {job.workers}"
        )
    need = Amounts(job.gpus, *exact(job.cpus, job.memory_gib))
    return Work(job, age, branch, need, job.user or job.project)


def demands_of(works: Sequence[Work], tree: Tree, asking: Sequence[Work]) -> list[Amounts]:
    """Return held plus asked for, by project age (R6).

    Args:
        asking: The jobs whose wish counts; one that can never run asks for nothing.
    """
    demands = [Amounts()] * len(tree.branches)
    wishes = {work.age for work in asking}
    for work in works:
        workers = work.job.workers if work.age in wishes else len(work.job.held)
        demands[work.branch.index] += work.need.times(workers)
    return demands
