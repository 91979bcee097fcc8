"""What-if: the same pool with other quotas, another policy or more GPUs, decided by the same core.

Two snapshots of the same instant and jobs are settled by the core's own passes. Their outcomes are
compared: which jobs run, wait (and why), and pay (R15-R18) now. Nothing is estimated, and no
decision is made outside the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from benchpool_scheduler.core.cluster.sound_plans import without_doubt
from benchpool_scheduler.core.effects import after
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.model import (
    Activity,
    JobFacts,
    JobId,
    Plan,
    Preempt,
    ProjectName,
    ReasonCode,
    Snapshot,
    Start,
    WaitReason,
)
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.errors import InvalidInput

PASSES = 5
"""Maximum number of passes until a pool without new events is at rest; most need two (R20)."""


class Fate(StrEnum):
    """Outcome of a job now."""

    RUNS = "runs"
    LEAVES = "leaves"  # it received its notice before, and still holds its GPUs
    PROMISED = "promised"  # its GPUs are promised, and other jobs are leaving them (R20)
    WAITS = "waits"


@dataclass(frozen=True, slots=True)
class JobFate:
    """Outcome of one job after the passes.

    Attributes:
        gpus: GPUs that it holds. A part of a GPU counts as one.
        workers: Number of its running workers.
        preempted: It was paused or lost workers in a pass, even if it runs again.
        moved: It resumed at other places (R18).
        lost_gpu_s: Progress and restart lost by preemption, in GPU-seconds.
        over_quota: It holds GPUs above its project's quota, which may be reclaimed.
        reason: Why it waits, or None.
    """

    fate: Fate
    gpus: int
    workers: int
    preempted: bool = False
    moved: bool = False
    lost_gpu_s: float = 0.0
    over_quota: bool = False
    reason: WaitReason | None = None

    @property
    def outcome(self) -> tuple[object, ...]:
        """Return the parts of the outcome that matter to the owner, without the reason."""
        return self.fate, self.gpus, self.workers, self.preempted, self.moved


@dataclass(frozen=True, slots=True)
class ProjectFate:
    """Outcome of one project after the passes, in GPUs.

    Attributes:
        quota, limit: None means no bound.
        waiting: Number of waiting jobs.
        waiting_gpus: GPUs that they request.
        preempted: Number of preempted jobs.
        lost_gpu_s: Cost of their preemptions, in GPU-seconds.
    """

    quota: int | None
    limit: int | None
    fair_share: int
    allocated: int
    running: int
    waiting: int
    waiting_gpus: int
    preempted: int
    lost_gpu_s: float


@dataclass(frozen=True, slots=True)
class JobComparison:
    """Outcomes of one job in both pools."""

    job: JobFacts
    before: JobFate
    after: JobFate

    @property
    def differs(self) -> bool:
        """Return whether the outcomes differ."""
        return self.before.outcome != self.after.outcome


@dataclass(frozen=True, slots=True)
class ProjectFateChange:
    """Outcomes of one project in both pools. None means that the project does not exist there."""

    name: ProjectName
    before: ProjectFate | None
    after: ProjectFate | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences between two pools now.

    Attributes:
        gpus: GPUs that train may use, before and after.
        allocated: GPUs that running jobs would hold, before and after. GPUs of leaving jobs are not
            included.
        projects: All projects in the order of the second snapshot, then removed ones.
        jobs: All jobs, in order of age.
    """

    gpus: tuple[int, int]
    allocated: tuple[int, int]
    projects: tuple[ProjectFateChange, ...]
    jobs: tuple[JobComparison, ...]

    @property
    def changed(self) -> tuple[JobComparison, ...]:
        """Return the jobs whose outcomes differ."""
        return tuple(job for job in self.jobs if job.differs)


@dataclass(frozen=True, slots=True)
class Settled:
    """A pool that has reached a stable state.

    Attributes:
        plan: Plan of the last pass, with shares and reasons.
        lost: Cost of preemptions by job, without moves, in GPU-seconds.
        moved: Jobs that moved.
    """

    snapshot: Snapshot
    plan: Plan
    lost: Mapping[JobId, float]
    moved: frozenset[JobId]


def settle(snapshot: Snapshot, passes: int = PASSES) -> Settled:
    """Run passes whose commands take effect at once, until a pass has no commands.

    If a claim is only delayed (``claim_delay_s``, R19), the delay is skipped and the passes run
    again.

    Raises:
        InvalidInput: The snapshot contradicts itself.
    """
    lost: dict[JobId, float] = {}
    moved: set[JobId] = set()
    rested = _settled(snapshot, passes, lost, moved)
    if any(it.code is ReasonCode.CLAIM_DELAYED for it in rested.plan.reasons.values()):
        later = rested.snapshot.now_s + rested.snapshot.policy.claim_delay_s
        rested = _settled(replace(rested.snapshot, now_s=later), passes, lost, moved)
    return rested


def _settled(
    snapshot: Snapshot, passes: int, lost: dict[JobId, float], moved: set[JobId]
) -> Settled:
    for _ in range(passes):
        plan = without_doubt(snapshot, decide(snapshot)).plan
        moving = {c.job for c in plan.commands if isinstance(c, Start) and c.job in c.after}
        moved |= moving
        for command in plan.commands:
            if isinstance(command, Preempt) and command.job not in moving:
                lost[command.job] = lost.get(command.job, 0.0) + command.lost_gpu_s
        snapshot = after(snapshot, plan)
        if not plan.commands:
            break
    return Settled(snapshot, plan, lost, frozenset(moved))


def compare(before: Snapshot, after: Snapshot) -> Comparison:
    """Compare the outcomes of two pools now.

    Args:
        before, after: The same jobs at the same instant, with other nodes, projects or policy.

    Raises:
        InvalidInput: The jobs are not the same, or a snapshot contradicts itself.

    >>> from benchpool_scheduler.core.whatif.expansion import with_nodes
    >>> from benchpool_scheduler.core.model import GpuId, Node, NodeName, Project
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("box"), (GpuId("a"),)),),
    ...     projects=(Project(ProjectName("susan"), quota=1),),
    ...     jobs=tuple(JobFacts(JobId(name), ProjectName("susan")) for name in ("one", "two")),
    ... )
    >>> found = compare(pool, with_nodes(pool, 1))
    >>> [(it.job.id, it.before.fate.value, it.after.fate.value) for it in found.changed]
    [('two', 'waits', 'runs')]
    """
    if [job.id for job in before.jobs] != [job.id for job in after.jobs]:
        raise InvalidInput("What-if compares two pools with the same jobs; give both the same.")
    was, would = settle(before), settle(after)
    jobs = tuple(
        JobComparison(job, _job_now(was, job, one), _job_now(would, job, other))
        for job, one, other in zip(before.jobs, was.snapshot.jobs, would.snapshot.jobs, strict=True)
    )
    return Comparison(
        gpus=(_capacity(before), _capacity(after)),
        allocated=(_allocated(was.snapshot.jobs), _allocated(would.snapshot.jobs)),
        projects=tuple(_projects(was, would)),
        jobs=jobs,
    )


def _capacity(snapshot: Snapshot) -> int:
    return sum(max(0, len(node.gpus) - node.kept) for node in snapshot.nodes if node.ready)


def _allocated(jobs: Iterable[JobFacts]) -> int:
    """Return the GPUs of running jobs. Parts of GPUs are added up and rounded up."""
    held = (worker for job in jobs if _fate(job) is Fate.RUNS for worker in job.held)
    return _whole(WHOLE_GPU * len(it.gpus) if it.part is None else it.part for it in held)


def _asked(jobs: Iterable[JobFacts]) -> int:
    return _whole(job.spec.workers * (job.fraction or WHOLE_GPU * job.spec.gpus) for job in jobs)


def _whole(thousandths: Iterable[int]) -> int:
    return -(-sum(thousandths) // WHOLE_GPU)


def _gpus(job: JobFacts) -> int:
    return sum(len(worker.gpus) for worker in job.held)


def _job_now(settled: Settled, job: JobFacts, then: JobFacts) -> JobFate:
    return JobFate(
        fate=_fate(then),
        gpus=_gpus(then),
        workers=len(then.held),
        preempted=job.id in settled.lost,
        moved=job.id in settled.moved,
        lost_gpu_s=settled.lost.get(job.id, 0.0),
        over_quota=job.id in settled.plan.over_quota,
        reason=settled.plan.reasons.get(job.id),
    )


def _fate(job: JobFacts) -> Fate:
    if job.activity is Activity.RUNNING:
        return Fate.RUNS
    if job.activity is Activity.TERMINATING:
        return Fate.LEAVES
    return Fate.PROMISED if job.is_nominated else Fate.WAITS


def _projects(was: Settled, would: Settled) -> Iterator[ProjectFateChange]:
    before, after = _by_project(was), _by_project(would)
    for name in dict.fromkeys([*after, *before]):
        yield ProjectFateChange(name, before.get(name), after.get(name))


def _by_project(settled: Settled) -> Mapping[ProjectName, ProjectFate]:
    mine: dict[ProjectName, list[JobFacts]] = {}
    above = {p.name: p.parent for p in settled.snapshot.projects}
    for job in settled.snapshot.jobs:
        name: ProjectName | None = job.project
        while name is not None:
            mine.setdefault(name, []).append(job)
            name = above[name]
    return {
        project.name: _project(project.limit, settled, project.name, mine.get(project.name, []))
        for project in settled.snapshot.projects
    }


def _project(
    limit: int | None, settled: Settled, name: ProjectName, jobs: list[JobFacts]
) -> ProjectFate:
    share = settled.plan.shares[name]
    waiting = [job for job in jobs if _fate(job) is Fate.WAITS]
    paying = [settled.lost[job.id] for job in jobs if job.id in settled.lost]
    return ProjectFate(
        quota=share.quota,
        limit=limit,
        fair_share=share.fair_share,
        allocated=_allocated(jobs),
        running=sum(_fate(job) is Fate.RUNS for job in jobs),
        waiting=len(waiting),
        waiting_gpus=_asked(waiting),
        preempted=len(paying),
        lost_gpu_s=sum(paying),
    )
