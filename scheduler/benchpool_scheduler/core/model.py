"""Input and output of the core, as frozen data.

A ``Snapshot`` is the pool at an instant, and ``plan.decide`` returns a ``Plan`` for it. Times are
given in seconds. The core has no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode as ReasonCode

JobId = NewType("JobId", str)
ProjectName = NewType("ProjectName", str)
NodeName = NewType("NodeName", str)
GpuId = NewType("GpuId", str)


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with GPUs that train may use.

    Attributes:
        gpus: All GPUs here that train may use, in use by workers or not. Leased, foreign and broken
            GPUs are not included (R1).
        kept: How many of ``gpus`` must stay free for benches (R3). They are not counted.
        called: How many of ``kept`` were lent and have a waiting owner. All pausable jobs are
        preempted
            for them, even if protected or within quota (R3).
        lent: How many other GPUs are reserved for benches and idle. Only jobs that can be paused
        may
            use them (R3, ``lend_idle``).
        on_benches: GPUs that benches hold now and lend when idle. They are not in ``gpus``.
        cpus: Processor cores, or None for no bound.
        memory_gib: Memory in GiB, or None for no bound.
        labels: Node labels by name, for topology levels.
        links: Closeness of two GPUs, by their positions in ``gpus``. Larger is closer. Empty if
            unknown (R12).
        sockets: CPU socket of each GPU, by position. Empty if unknown.
        shared: Workers of one project may share a GPU (``share: cooperative``, R1).
        closed: Why an administrator closed it, now or soon, as the rest of a sentence that begins
        with
            its name. Empty while it is open (``core.lifecycle.closing``).
        closes_s: When it closes, on the clock of ``Snapshot.now_s``, or None if it is closed.
        away: Number of further GPUs that cannot be assigned now: broken GPUs, and GPUs in foreign
        use.
    """

    name: NodeName
    gpus: tuple[GpuId, ...]
    kept: int = 0
    called: int = 0
    lent: int = 0
    on_benches: tuple[GpuId, ...] = ()
    gpu_model: str | None = None
    cpus: float | None = None
    memory_gib: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    links: tuple[tuple[int, ...], ...] = ()
    sockets: tuple[int, ...] = ()
    shared: bool = False
    closed: str = ""
    closes_s: float | None = None
    away: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """Quota, limit and weight of one resource. None means no bound, for the weight the quota."""

    quota: float | None = None
    limit: float | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """A queue of the pool. Its position in ``Snapshot.projects`` is its age, oldest first.

    Attributes:
        quota: Guaranteed GPUs, or None for unlimited.
        limit: Most GPUs that it may hold, or None for no limit.
        weight: Weight for the surplus. None means equal to the quota, or 1 if that is unlimited
        (R5).
        min_runtime_s: Protection after a start. None takes the nearest ancestor's (R19).
        used_gpu_s: Decayed past use of over-quota GPUs (R7).
        gone: It still has jobs, but the configuration no longer has it, or divides it.
        reserved: GPUs of ``quota`` that it has only for a time. Non-preemptible jobs may not use
        them
            (``core.fairness.reservations``).
    """

    name: ProjectName
    parent: ProjectName | None = None
    quota: int | None = 0
    limit: int | None = None
    weight: float | None = None
    priority: int = 0
    cpus: Bound = Bound()
    memory_gib: Bound = Bound()
    min_runtime_s: float | None = None
    used_gpu_s: float = 0.0
    gone: bool = False
    reserved: int = 0


ONE_GPU = JobSpec()
"""Default request of a job: one worker with one GPU."""


class Activity(StrEnum):
    """Activity of a job, as far as the core needs it."""

    QUEUED = "queued"
    RUNNING = "running"  # starting or running: holds its GPUs
    TERMINATING = "terminating"  # its GPUs are not free yet, and it cannot be a victim


@dataclass(frozen=True, slots=True)
class Worker:
    """One process group of a job, with the GPUs that it holds on one node.

    Attributes:
        part: Thousandths of its one GPU if it holds part of one, else None (R1).
    """

    node: NodeName
    gpus: tuple[GpuId, ...]
    part: int | None = None


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A unit of training. Its position in ``Snapshot.jobs`` is its age, oldest first.

    Attributes:
        spec: Its specification. If some workers of a gang have succeeded, ``workers`` are the rest.
        held: Its present workers. Empty while queued.
        as_of_s: When the three times below were true, on the clock of ``Snapshot.now_s``.
        ran_s: Time since its last start.
        since_checkpoint_s: Progress that a pause would lose.
        waits_s: Time since it was queued.
        expected_run_s: Total run time learned from earlier jobs, or None if unknown (R14).
        done_s: Part of ``expected_run_s`` that earlier attempts have done.
        is_nominated: It was promised the GPUs that victims are leaving (R20): the last plan held a
            ``Start`` of it with ``after``.
        nominated: Places of that ``Start``, kept for it while they are available.
        preemptions_last_hour: Number of its preemptions in the last hour (R19).
        preemptions_last_day: Number of its preemptions in the last 24 hours.
        fraction: Thousandths of one GPU for a single worker, else None. ``spec.gpus`` is then 1.
        only: Nodes that it may use, e.g. where its volume is available, or None for any.
        barred: Nodes that it may not use for now, because they rejected it.
        blocked: Why it may not start whatever is free, or None. A blocked job adds no demand.
        behind: Its user is past a soft budget: other jobs of its priority in its project go first
        (R7).
        begun: It has had GPUs before, so that no budget blocks it.
    """

    id: JobId
    project: ProjectName
    spec: JobSpec = ONE_GPU
    user: str | None = None
    activity: Activity = Activity.QUEUED
    held: tuple[Worker, ...] = ()
    ran_s: float = 0.0
    since_checkpoint_s: float | None = None
    checkpoints: bool = True
    waits_s: float = 0.0
    is_nominated: bool = False
    nominated: tuple[Worker, ...] = ()
    preemptions_last_hour: int = 0
    preemptions_last_day: int = 0
    fraction: int | None = None
    as_of_s: float = 0.0
    expected_run_s: float | None = None
    done_s: float = 0.0
    only: frozenset[NodeName] | None = None
    barred: frozenset[NodeName] = frozenset()
    blocked: WaitReason | None = None
    behind: bool = False
    begun: bool = False

    def ran_at(self, now_s: float) -> float:
        """Return the time since its last start at an instant, in seconds."""
        return self.ran_s + now_s - self.as_of_s

    def unsaved_at(self, now_s: float) -> float:
        """Return the progress that a pause at an instant would lose, in seconds (R18)."""
        if self.since_checkpoint_s is None or not self.checkpoints:
            return self.ran_at(now_s)
        return self.since_checkpoint_s + now_s - self.as_of_s

    def attained_at(self, now_s: float) -> float:
        """Return its run time in all attempts by an instant, in seconds."""
        return self.done_s + (self.ran_at(now_s) if self.held else 0.0)

    def waited_at(self, now_s: float) -> float:
        """Return the time since it was queued at an instant, in seconds."""
        return self.waits_s + now_s - self.as_of_s


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of a pool, by their configuration names (formats, section 6).

    Attributes:
        grace_s: Time for a checkpoint between notice and kill (R19).
        min_runtime_s: Default protection after each start (R19).
        preemptions_per_hour: Limit on preemptions of one job in an hour (R19).
        preemptions_per_day: Limit on preemptions of one job in 24 hours (R19).
        usage_half_life_h: Half-life of past use, in hours (R7).
        usage_weight: Strength of past use. 0 means off (R7).
        restart_s: Cost of one restart, for the choice of victims (R18).
        long_run_s: A job with this run time in all its attempts is *long-running*. The surplus is
            divided among younger jobs first (R5). Younger jobs of its project and priority go
            before
            it and take its GPUs above the quota (R11, R15). It is preempted first, the largest
            first (R18), and it reclaims only within quota (R15). 0 means off.
        claim_delay_s: Delay before a job preempts long-running jobs for GPUs beyond its quota, in
            seconds. Often enough GPUs become free by themselves (R19).
    """

    grace_s: float = 30.0
    min_runtime_s: float = 0.0
    preemptions_per_hour: int = 4
    preemptions_per_day: int = 24
    usage_half_life_h: float = 168.0
    usage_weight: float = 0.0
    restart_s: float = 60.0
    long_run_s: float = 7200.0
    claim_delay_s: float = 45.0

    def has_paid_enough(self, job: JobFacts) -> bool:
        """Return whether a job has reached a limit on preemptions (R19)."""
        return (
            job.preemptions_last_hour >= self.preemptions_per_hour
            or job.preemptions_last_day >= self.preemptions_per_day
        )


@dataclass(frozen=True, slots=True)
class UserUse:
    """Decayed past use of one user inside one project, in GPU-seconds (R7)."""

    name: str
    project: ProjectName
    used_gpu_s: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pool at an instant, without terminal and user-paused jobs.

    Attributes:
        now_s: The instant, on any clock. The times of a job count from its ``as_of_s``.
    """

    nodes: tuple[Node, ...]
    projects: tuple[Project, ...]
    jobs: tuple[JobFacts, ...]
    policy: Policy = Policy()
    users: tuple[UserUse, ...] = ()
    topology: tuple[str, ...] = ()
    now_s: float = 0.0


# --------------------------------------------------------------------------- results


@dataclass(frozen=True, slots=True)
class Start:
    """Start these workers of a queued job, or add them to a running one.

    Attributes:
        after: Jobs that are leaving some of these GPUs and must be gone first. Empty if the start
        can
            happen now. Until then the job stays queued. Pass it to the next pass with
            ``is_nominated``
            and ``nominated=workers`` (R20). Every plan repeats the promise while it is valid. The
            plan
            with an empty ``after`` starts the job. A job in its own ``after`` moves: the same plan
            preempts it, and it resumes at these places (R18).
    """

    job: JobId
    workers: tuple[Worker, ...]
    after: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class Preempt:
    """Pause a running job, or take some of its workers, to free GPUs.

    Attributes:
        workers: Workers that it loses. All of them if the job is paused.
        claimant: Job that gets the GPUs, or None for benches (R3).
        rule: Rule that allows it, e.g. ``R15``.
        lost_gpu_s: Progress and restart cost of the victim, in GPU-seconds (R18).
    """

    job: JobId
    workers: tuple[Worker, ...]
    claimant: JobId | None
    rule: str
    lost_gpu_s: float


Command = Start | Preempt


@dataclass(frozen=True, slots=True)
class NamedJob:
    """Another job that a reason is about, with a text for readers who may see that job."""

    job: JobId
    text: str


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Why a job waits: true now, with numbers, the tree level and a remedy (R22).

    ``text`` names no other user's job. ``other`` is for readers who may see the job it is about.
    """

    code: ReasonCode
    text: str
    numbers: Mapping[str, int | float | str | None]
    remedy: str
    other: NamedJob | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Present amounts of one project, in GPUs. None means unlimited.

    Attributes:
        guaranteed: Its quota and its part of the parent's guarantee beyond the quotas of all its
            children (R5a).
    """

    quota: int | None
    guaranteed: int | None
    fair_share: int
    allocated: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Result of one pass: commands, reasons of waiting jobs, and fair shares.

    Attributes:
        commands: Commands, in the order in which they must take effect.
        reasons: One entry per job that is still queued after the commands. A job whose ``Start``
        must
            wait for departures counts as queued.
        over_quota: GPUs that are held above their project's quota after the commands, by job. Jobs
            without any are left out.
        wake_s: When the result may change without any event, e.g. because a protection ends (R19).
            None if never.
    """

    commands: tuple[Command, ...]
    reasons: Mapping[JobId, WaitReason]
    shares: Mapping[ProjectName, Share]
    over_quota: Mapping[JobId, frozenset[GpuId]] = field(default_factory=dict)
    wake_s: float | None = None
