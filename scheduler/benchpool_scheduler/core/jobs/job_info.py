"""Jobs as a pass uses them: with their place in the project tree and exact amounts."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, Amounts, exact
from benchpool_scheduler.core.jobs.tree import Branch, Tree
from benchpool_scheduler.core.model import Activity, JobFacts, NodeName
from benchpool_scheduler.errors import InvalidInput


class Requirements(NamedTuple):
    """Requirements that decide where workers fit. Jobs with equal requirements fit the same places.

    Attributes:
        gpus: Whole GPUs of one worker, or 0 if it takes part of one.
        part: Thousandths of its one GPU, else 0 (R1).
        cpus: Thousandths of a core.
        memory: Memory in MiB.
        models: Accepted GPU models, best first. Empty for any (R13).
        owner: Index of the project, if the worker takes part of a GPU: only one project shares it
        (R1).
        fixed: It may not be paused, so that it gets no GPUs lent by benches (R3).
        only: Nodes that it may use, or None for any.
        barred: Nodes that it may not use.
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
        """Return whether no node is excluded by name."""
        return self.only is None and not self.barred


class JobInfo:
    """A job in a pass.

    Attributes:
        age: Rank among all jobs by submission. The smallest is the oldest.
        branch: Its project.
        request: Amounts of one worker.
        min_gang: Amounts of its smallest gang.
        user: User for the order inside the project (R7).
        spec: Its specification.
        least: Fewest workers with which it may run.
        queued: It waits for its first worker.
        requirements: Requirements that decide where its workers fit.
        long: It is long-running (``Policy.long_run_s``), so that younger jobs go before it. Never
        set
            if a pause would lose all of its progress.
        signature: Everything that decides whether it can start. Jobs of one signature have the same
            result in a pass.
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
        """Return its rank inside the project. Jobs with the largest rank are preempted last."""
        return self.spec.priority, not self.long

    def anywhere(self) -> JobInfo:
        """Return the same job without exclusions of nodes by name."""
        free = replace(self.job, only=None, barred=frozenset())
        return JobInfo(free, self.age, self.branch, long=self.long)

    def with_gpus(self, gpus: int) -> JobInfo:
        """Return the same job with another number of GPUs per worker, for advice (R22)."""
        job = replace(self.job, spec=self.spec.changed(gpus=gpus), fraction=None)
        return JobInfo(job, self.age, self.branch, long=self.long)

    def with_models(self, models: tuple[str, ...]) -> JobInfo:
        """Return the same job with other accepted GPU models, for advice (R22)."""
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
    """Return amounts and requirements of one worker, cached since most jobs are alike."""
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
    """Return a job with its place in the tree, as of its ``as_of_s``.

    Args:
        long_run_s: Run time from which it is long-running, in seconds. 0 means never.

    Raises:
        InvalidInput: It names no project that may hold jobs, or has impossible numbers.
    """
    branch = tree.of(job.project)
    if branch.children:
        raise InvalidInput(
            f"job {job.id} is in project {branch.name}, which has projects below it; "
            "put it into one of these"
        )
    spec = job.spec
    least = spec.workers if spec.min_workers is None else spec.min_workers
    if not 1 <= least <= spec.workers:
        raise InvalidInput(
            f"job {job.id} asks for {spec.workers} workers and at least {least}; "
            f"the minimum must be between 1 and {spec.workers}"
        )
    if job.fraction is not None and (spec.workers > 1 or not 0 < job.fraction < WHOLE_GPU):
        raise InvalidInput(
            f"job {job.id} asks for {job.fraction} thousandths of a GPU "
            f"for {spec.workers} workers; "
            f"a part is between 1 and {WHOLE_GPU - 1}, for a single worker"
        )
    long = job.checkpoints and 0 < long_run_s <= job.attained_at(job.as_of_s)
    return JobInfo(job, age, branch, long=long)
