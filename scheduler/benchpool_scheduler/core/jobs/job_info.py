"""Jobs as one pass sees them: with their place in the tree and exact amounts."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, Amounts, exact
from benchpool_scheduler.core.jobs.tree import Branch, Tree
from benchpool_scheduler.core.model import Activity, Job, NodeName
from benchpool_scheduler.errors import InvalidInput


class Requirements(NamedTuple):
    """What decides where workers could go: jobs with equal requirements find the same places.

    Attributes:
        gpus: Whole GPUs of one worker; 0 where it takes part of one.
        part: Thousandths of its one GPU, else 0 (R1).
        cpus: Thousandths of a core; ``memory`` in MiB.
        models: Accepted GPU models, best first; empty for any (R13).
        owner: The project, where it takes part of a GPU: such GPUs are shared inside one (R1).
        fixed: It may not be paused, so that it gets nothing that benches have lent (R3).
        only: The nodes that it may use, None for any; ``barred``: those that it may not.
    """

    gpus: int
    part: int
    cpus: int
    memory: int
    models: tuple[str, ...]
    required: str | None
    preferred: str | None
    spread: bool
    owner: int = -1
    fixed: bool = False
    only: frozenset[NodeName] | None = None
    barred: frozenset[NodeName] = frozenset()

    @property
    def anywhere(self) -> bool:
        """Whether no node is out for it by name."""
        return self.only is None and not self.barred


class JobInfo:
    """A job in a pass.

    Attributes:
        age: Position among all jobs by submission; the smallest is the oldest.
        branch: Its project. ``request``: what one worker takes; ``core``: its smallest gang.
        user: Whose turn it is, inside the project (R7).
        queued: It waits for its first worker.
        requirements: What decides where its workers could go.
        long: It has run long (``Policy.long_run_s``): younger work goes before it. Never where a
            pause would lose all of its progress.
        signature: What decides whether it can start: jobs of one signature fare alike in a pass.
    """

    __slots__ = (
        "age",
        "branch",
        "job",
        "long",
        "min_gang",
        "queued",
        "request",
        "requirements",
        "signature",
        "user",
    )

    def __init__(self, job: Job, age: int, branch: Branch, *, long: bool = False) -> None:
        self.job = job
        self.age = age
        self.branch = branch
        self.request, self.requirements = _asked(
            job.gpus,
            job.fraction or 0,
            job.cpus,
            job.memory_gib,
            job.gpu_models,
            job.required_level,
            job.preferred_level,
            job.spread,
            branch.index if job.fraction else -1,
            not job.preemptible,
            job.only,
            job.barred,
        )
        self.min_gang = (
            self.request if job.min_workers == 1 else self.request.times(job.min_workers)
        )
        self.user = job.user or job.project
        self.long = long
        self.queued = job.activity is Activity.QUEUED
        self.signature = (
            branch.index,
            self.requirements,
            job.min_workers,
            job.preemptible,
            job.priority,
            long,
        )

    @property
    def rank(self) -> tuple[int, bool]:
        """Return who gives way last inside a project: the largest."""
        return self.job.priority, not self.long

    def anywhere(self) -> JobInfo:
        """Return the same job as if no node were out for it by name."""
        free = replace(self.job, only=None, barred=frozenset())
        return JobInfo(free, self.age, self.branch, long=self.long)

    def with_gpus(self, gpus: int) -> JobInfo:
        """Return the same job as if it asked for other GPUs per worker, for advice (R22)."""
        return JobInfo(
            replace(self.job, gpus=gpus, fraction=None), self.age, self.branch, long=self.long
        )


@lru_cache(maxsize=4096)
def _asked(
    gpus: int,
    part: int,
    cpus: float,
    memory_gib: float,
    models: tuple[str, ...],
    required: str | None,
    preferred: str | None,
    spread: bool,
    owner: int,
    fixed: bool,
    only: frozenset[NodeName] | None,
    barred: frozenset[NodeName],
) -> tuple[Amounts, Requirements]:
    """Return what one worker takes, and where it could go; most jobs ask for what others do."""
    millicores, mib = exact(cpus, memory_gib)
    request = Amounts(part or gpus * WHOLE_GPU, millicores, mib)
    whole = 0 if part else gpus
    requirements = Requirements(
        whole,
        part,
        millicores,
        mib,
        models,
        required,
        preferred,
        spread,
        owner,
        fixed,
        only,
        barred,
    )
    return request, requirements


def job_info_of(job: Job, age: int, tree: Tree, long_run_s: float = 0.0) -> JobInfo:
    """Return a job with its place in the tree, as it was at its ``as_of_s``.

    Args:
        long_run_s: After how long it counts as long-running; 0 for never.

    Raises:
        InvalidInput: It names no project that may hold jobs, or has impossible numbers.
    """
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
    if job.fraction is not None and (job.workers > 1 or not 0 < job.fraction < WHOLE_GPU):
        raise InvalidInput(
            f"job {job.id} asks for {job.fraction} thousandths of a GPU for {job.workers} workers; "
            f"a part is between 1 and {WHOLE_GPU - 1}, for a single worker"
        )
    long = job.checkpoints and 0 < long_run_s <= job.attained_at(job.as_of_s)
    return JobInfo(job, age, branch, long=long)
