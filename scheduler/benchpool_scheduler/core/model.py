"""What the core is told and what it answers, as frozen data.

A ``Snapshot`` is the pool at an instant; ``plan.decide`` answers it with a ``Plan``. Times are
facts given in seconds; the core has no clock.
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
        gpus: All GPUs here that train may use, in use by workers or not; leased, foreign and
            broken ones are not in it (R1).
        kept: How many of ``gpus`` must stay free for benches (R3): they count for nobody.
        called: How many of ``kept`` were lent and have an owner who waits: whatever can be paused
            gives way for them, protected or within quota (R3).
        lent: How many others are reserved for benches and idle: only jobs that can be paused may
            use them (R3, ``lend_idle``).
        on_benches: GPUs that benches hold now and lend again when they are done; not in ``gpus``.
        cpus: Processor cores, or None for no bound; ``memory_gib`` likewise.
        labels: Node labels by name, for topology levels.
        links: How close two GPUs are, by their positions in ``gpus``; larger is closer. Empty
            where nothing is known (R12).
        sockets: The CPU socket of each GPU, by position. Empty where nothing is known.
        shared: Parts of a GPU may be given to workers of one project (``share: cooperative``, R1).
        closed: Why an administrator lets nothing start there, now or soon, as the rest of a
            sentence that begins with its name; empty while it is open (``core.lifecycle.closing``).
        closes_s: When it closes, on the clock of ``Snapshot.now_s``; None when it is closed.
        away: How many GPUs it has besides that nobody may be given now: broken ones, and those
            that something holds which the pool does not know.
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
    """Quota, limit and weight of one resource; None means no bound, for weight the quota."""

    quota: float | None = None
    limit: float | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """A queue of the pool; the position in ``Snapshot.projects`` is its age, oldest first.

    Attributes:
        quota: Guaranteed GPUs, None for unlimited. ``limit``: the most it may hold, None for none.
        weight: Part of the surplus; None means equal to the quota, 1 when that is unlimited (R5).
        min_runtime_s: Protection after a start; None takes the nearest ancestor's (R19).
        used_gpu_s: Decayed past use of over-quota GPUs (R7).
        gone: Jobs of it are left, but the configuration has it no more or divides it.
        reserved: GPUs of ``quota`` that it has for a time only: not for jobs that may not be paused
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
"""What a job asks for that says nothing: one worker with one GPU."""


class Activity(StrEnum):
    """What a job is doing, as far as the core must know."""

    QUEUED = "queued"
    RUNNING = "running"  # starting or running: holds its GPUs
    TERMINATING = "terminating"  # its GPUs are not free yet, and it is no victim


@dataclass(frozen=True, slots=True)
class Worker:
    """One process group of a job and the GPUs it holds on one node.

    Attributes:
        part: Thousandths of its one GPU, where it does not hold all of it (R1); else None.
    """

    node: NodeName
    gpus: tuple[GpuId, ...]
    part: int | None = None


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A unit of training; the position in ``Snapshot.jobs`` is its age, oldest first.

    Attributes:
        spec: What it asks for. Of a gang of which some have ended well, ``workers`` are the rest.
        held: The workers it has now; empty while queued.
        as_of_s: When the three times below were true, on the clock of ``Snapshot.now_s``.
        ran_s: Time since its last start. ``since_checkpoint_s``: progress that a pause would lose.
            ``waits_s``: time since it was queued.
        expected_run_s: How long it will run in all, learned from earlier jobs; None while nothing
            is known (R14). ``done_s``: the part of it that earlier attempts have done.
        is_nominated: It was promised the GPUs that victims are giving back (R20): the last plan
            held a ``Start`` of it with ``after``.
        nominated: The places of that ``Start``, kept for it while they can be had.
        preemptions_last_hour: How often it was preempted in the last hour (R19).
            ``preemptions_last_day``: in the last 24 hours.
        fraction: A single worker's part of one GPU in thousandths, else None; ``spec.gpus`` is then
            1.
        only: The nodes that it may use, e.g. where its volume can be had; None for any.
        barred: Nodes that it may not use for now, because they did not take it.
        blocked: Why it may not start whatever is free; it then asks for nothing. None where it may.
        behind: Its user is past a soft budget: others of its priority in its project go first (R7).
        begun: It has had GPUs before: no budget keeps it from going on.
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
        """Return the time since its last start at an instant."""
        return self.ran_s + now_s - self.as_of_s

    def unsaved_at(self, now_s: float) -> float:
        """Return the progress that a pause at an instant would lose (R18)."""
        if self.since_checkpoint_s is None or not self.checkpoints:
            return self.ran_at(now_s)
        return self.since_checkpoint_s + now_s - self.as_of_s

    def attained_at(self, now_s: float) -> float:
        """Return how long it has run by an instant, in all its attempts."""
        return self.done_s + (self.ran_at(now_s) if self.held else 0.0)

    def waited_at(self, now_s: float) -> float:
        """Return the time since it was queued at an instant."""
        return self.waits_s + now_s - self.as_of_s


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of a pool by their configuration names (formats, section 6).

    Attributes:
        grace_s: Time for a checkpoint between notice and kill (R19).
        min_runtime_s: Protection after each start where no project says otherwise (R19).
        preemptions_per_hour: Bound on preemptions of one job in an hour (R19).
            ``preemptions_per_day``: in any 24 hours.
        usage_half_life_h: Half-life of the memory of past use (R7).
        usage_weight: Strength of that memory; 0 is off (R7).
        restart_s: Cost of one restart, for the choice of victims (R18).
        long_run_s: A job that has run so long in all its attempts is *long-running*: the surplus is
            divided among younger work first (R5), its own project's younger jobs of its priority
            go before it and take its GPUs above the quota (R11, R15), it gives way first, the
            largest first (R18), and it takes room back only within quota (R15). 0 is off.
        claim_delay_s: For this many seconds a job waits before it stops long-running work for GPUs
            beyond its quota: often enough comes free by itself (R19).
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
        """Tell whether a job was preempted as often as one may be for now (R19)."""
        return (
            job.preemptions_last_hour >= self.preemptions_per_hour
            or job.preemptions_last_day >= self.preemptions_per_day
        )


@dataclass(frozen=True, slots=True)
class UserUse:
    """Decayed past use of one user inside one project, in GPU seconds (R7)."""

    name: str
    project: ProjectName
    used_gpu_s: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pool at an instant. Terminal and user-paused jobs are not in it.

    Attributes:
        now_s: The instant, on any clock; the times of a job count from its ``as_of_s`` on.
    """

    nodes: tuple[Node, ...]
    projects: tuple[Project, ...]
    jobs: tuple[JobFacts, ...]
    policy: Policy = Policy()
    users: tuple[UserUse, ...] = ()
    topology: tuple[str, ...] = ()
    now_s: float = 0.0


# --------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Start:
    """Start these workers of a queued job, or add them to a running one.

    Attributes:
        after: Jobs that are leaving some of these GPUs and must be gone first; empty when the
            start can happen now. Until then the job stays queued: give it back to the next pass
            with ``is_nominated`` and ``nominated=workers`` (R20). Every plan repeats the promise
            while it stands; the one with an empty ``after`` starts it. A job that is in its own
            ``after`` moves: the same plan preempts it, and it goes on at these places (R18).
    """

    job: JobId
    workers: tuple[Worker, ...]
    after: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class Preempt:
    """Pause a running job, or take some of its workers, to make room.

    Attributes:
        workers: The workers it loses; all of them when the job is paused.
        claimant: The job that gets the room; None when benches get it (R3).
        rule: The rule that allows it, e.g. ``R15``.
        lost_gpu_s: Progress and restart cost of the victim, GPU seconds (R18).
    """

    job: JobId
    workers: tuple[Worker, ...]
    claimant: JobId | None
    rule: str
    lost_gpu_s: float


Command = Start | Preempt


@dataclass(frozen=True, slots=True)
class NamedJob:
    """Another job that a reason is about. ``text`` is the reason's, for who may see that job."""

    job: JobId
    text: str


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Why a job waits: true now, with the numbers, the tree level and what would help (R22).

    ``text`` names nobody else's work; ``other`` is for those who may see the job it is about.
    """

    code: ReasonCode
    text: str
    numbers: Mapping[str, int | float | str | None]
    remedy: str
    other: NamedJob | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """One project now, in GPUs; None is unlimited.

    Attributes:
        guaranteed: Its quota, and its part of what its parent is guaranteed beyond the quotas of
            all its children (R5a).
    """

    quota: int | None
    guaranteed: int | None
    fair_share: int
    allocated: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of one pass: what to do, why others wait, what each project deserves.

    ``commands`` are in the order in which they must take effect. ``reasons`` has exactly one entry
    per job that is still queued after the commands; a job whose ``Start`` must wait for others to
    leave counts as queued. ``over_quota`` names the GPUs that, after the commands, are held above
    their project's quota, by job; no job without any. ``wake_s`` is when the answer may change
    although nothing happens, e.g. because a protection ends (R19); None when it never does.
    """

    commands: tuple[Command, ...]
    reasons: Mapping[JobId, WaitReason]
    shares: Mapping[ProjectName, Share]
    over_quota: Mapping[JobId, frozenset[GpuId]] = field(default_factory=dict)
    wake_s: float | None = None
