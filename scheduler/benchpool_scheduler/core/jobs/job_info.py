"""Jobs as one pass sees them: with their place in the tree and exact amounts."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, Amounts, exact
from benchpool_scheduler.core.jobs.tree import Branch, Tree
from benchpool_scheduler.core.model import Activity, JobFacts, NodeName
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
        spec: What it asks for; ``least``: the fewest workers that it may run with.
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
        "least",
        "long",
        "min_gang",
        "queued",
        "request",
        "requirements",
        "signature",
        "spec",
        "user",
    )

    def __init__(self, job: JobFacts, age: int, branch: Branch, *, long: bool = False) -> None:
        self.job = job
        self.spec = spec = job.spec
        self.least = least = spec.least_workers
        self.age = age
        self.branch = branch
        self.request, self.requirements = _asked(
            spec.gpus,
            job.fraction or 0,
            spec.cpus,
            spec.memory_gib,
            spec.gpu_models,
            spec.required_level,
            spec.preferred_level,
            spec.spread,
            branch.index if job.fraction else -1,
            not spec.preemptible,
            job.only,
            job.barred,
        )
        self.min_gang = self.request if least == 1 else self.request.times(least)
        self.user = job.user or job.project
        self.long = long
        self.queued = job.activity is Activity.QUEUED
        self.signature = (
            branch.index,
            self.requirements,
            least,
            spec.preemptible,
            spec.priority,
            long,
        )

    @property
    def rank(self) -> tuple[int, bool]:
        """Return who gives way last inside a project: the largest."""
        return self.spec.priority, not self.long

    def anywhere(self) -> JobInfo:
        """Return the same job as if no node were out for it by name."""
        free = replace(self.job, only=None, barred=frozenset())
        return JobInfo(free, self.age, self.branch, long=self.long)

    def with_gpus(self, gpus: int) -> JobInfo:
        """Return the same job as if it asked for other GPUs per worker, for advice (R22)."""
        job = replace(self.job, spec=self.spec.changed(gpus=gpus), fraction=None)
        return JobInfo(job, self.age, self.branch, long=self.long)

    def with_models(self, models: tuple[str, ...]) -> JobInfo:
        """Return the same job as if it accepted other GPU models, for advice (R22)."""
        job = replace(self.job, spec=self.spec.changed(gpu_models=models))
        return JobInfo(job, self.age, self.branch, long=self.long)


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


def job_info_of(job: JobFacts, age: int, tree: Tree, long_run_s: float = 0.0) -> JobInfo:
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
    spec = job.spec
    least = spec.workers if spec.min_workers is None else spec.min_workers
    if not 1 <= least <= spec.workers:
        raise InvalidInput(
            f"job {job.id} asks for {spec.workers} workers and at least {least}; "
            f"the least must be between 1 and {spec.workers}"
        )
    if job.fraction is not None and (spec.workers > 1 or not 0 < job.fraction < WHOLE_GPU):
        raise InvalidInput(
            f"job {job.id} asks for {job.fraction} thousandths of a GPU "
            f"for {spec.workers} workers; "
            f"a part is between 1 and {WHOLE_GPU - 1}, for a single worker"
        )
    long = job.checkpoints and 0 < long_run_s <= job.attained_at(job.as_of_s)
    return JobInfo(job, age, branch, long=long)
