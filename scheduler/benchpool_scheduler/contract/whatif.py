"""What would be otherwise: the question, and the pool before and after."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.contract.jobs import Reason
from benchpool_scheduler.contract.scalars import Name


class HistoryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """How far back."""

    days: Annotated[float, Meta(gt=0, le=3660)] = 30


class WhatIfQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """What would be otherwise: another ``benchpool.yaml``, more GPUs, or both.

    ``config`` is the text of the file; without it the one in force stays. ``settings`` are set in
    it, as ``config set`` would. Model and nodes of the
    added GPUs are by default like most of the pool's. ``history_days`` asks also how waits and use
    of the jobs that ended in the last so many days would have been.
    """

    config: Annotated[str, Meta(max_length=1 << 20)] | None = None
    settings: Annotated[list[Setting], Meta(max_length=10_000)] = []
    more_gpus: Annotated[int, Meta(ge=0, le=100_000)] = 0
    gpu_model: Name | None = None
    gpus_per_node: Annotated[int, Meta(ge=1, le=1024)] | None = None
    history_days: Annotated[float, Meta(gt=0, le=3660)] | None = None


class JobNow(Struct, frozen=True):
    """What would become of a job now.

    ``state``: it ``runs``; it ``leaves`` (was told to stop before this question, and holds its GPUs
    until it has); its GPUs are ``promised`` and others are leaving them; or it ``waits``, with the
    reason. ``preempted``: it is paused or loses workers on the way, which costs ``lost_gpu_s``.
    """

    state: Literal["runs", "leaves", "promised", "waits"]
    gpus: int
    workers: int
    preempted: bool
    moved: bool
    lost_gpu_s: float
    over_quota: bool
    reason: Reason | None


class JobWhatIf(Struct, frozen=True):
    """One job in both pools; ``gpus`` is what it asks for in all."""

    id: str
    name: str
    project: str
    user: str
    gpus: int
    before: JobNow
    after: JobNow


class ProjectNow(Struct, frozen=True):
    """One project, with those below it, in GPUs; ``quota`` and ``limit`` null are no bound.

    ``running`` and ``waiting`` count jobs, ``preempted`` those that pay.
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


class ProjectWhatIf(Struct, frozen=True):
    """One project in both pools; null where it is not there."""

    name: str
    before: ProjectNow | None
    after: ProjectNow | None


class PoolGpus(Struct, frozen=True):
    """The GPUs that train may use, and those that running jobs hold."""

    gpus: int
    allocated: int


class ReplayFigures(Struct, frozen=True):
    """How a workload fared in a pool; the keys are those of ``benchpool replay``.

    A job's wait is all its time that it does not make progress. Short jobs run less than an hour.
    ``allocated_utilisation``: part of the pool's GPU seconds that jobs held. ``refused``: jobs that
    a budget of GPU-hours refused; they came again when the next month began.
    """

    gpus: int
    allocated_utilisation: float
    useful_utilisation: float
    mean_wait_h: float
    p50_wait_h: float
    p95_wait_h: float
    p99_wait_h: float
    short_job_wait_min: float
    mean_jct_h: float
    preemptions_per_job: float
    lost_gpu_h: float
    refused: int = 0


class ProjectWaits(Struct, frozen=True):
    """How one project's jobs fared; ``lost_gpu_h`` is what pauses cost."""

    mean_wait_h: float
    p95_wait_h: float
    preemptions: int
    lost_gpu_h: float


class ProjectReplay(Struct, frozen=True):
    """One project in both pools.

    ``gpu_h`` is the work of its jobs, ``why`` says why they wait longer after, where they do.
    """

    name: str
    jobs: int
    gpu_h: float
    before: ProjectWaits
    after: ProjectWaits
    why: str = ""


class WorkloadWhatIf(Struct, frozen=True):
    """The same jobs replayed in both pools; ``left_out`` are those that one could never run.

    ``why`` says of each figure that gets worse, by its key, what is behind that.
    """

    text: str
    jobs: int
    left_out: int
    before: ReplayFigures
    after: ReplayFigures
    projects: list[ProjectReplay]
    why: dict[str, str] = {}


class WhatIf(Struct, frozen=True):
    """Answer of ``whatif``; nothing was changed.

    ``changes`` and ``warnings`` are those of ``config check``. ``people`` says of everybody whose
    jobs would fare otherwise what that is, a sentence each. ``jobs`` are those that would fare
    otherwise, oldest first; ``jobs_left_out`` counts what did not fit into the answer. ``history``
    is there when it was asked for.
    """

    text: str
    before: PoolGpus
    after: PoolGpus
    projects: list[ProjectWhatIf]
    jobs: list[JobWhatIf]
    jobs_left_out: int = 0
    changes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    history: WorkloadWhatIf | None = None
    people: list[str] = field(default_factory=list)
