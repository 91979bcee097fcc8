"""What-if: a changed pool, and the pool before and after."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.contract.jobs import Reason
from benchpool_scheduler.contract.scalars import Name


class HistoryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Length of the history."""

    days: Annotated[float, Meta(gt=0, le=3660)] = 30


class WhatIfQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """Change to evaluate: another ``benchpool.yaml``, more GPUs, or both.

    ``config`` is the text of the file; without it the one in force stays. ``settings`` are then set
    in it, as by ``config set``. Added GPUs have by default the model and node size of most GPUs of
    the pool. ``history_days`` also replays the jobs that ended in this time, for their waits and
    use.
    """

    config: Annotated[str, Meta(max_length=1 << 20)] | None = None
    settings: Annotated[list[Setting], Meta(max_length=10_000)] = []
    more_gpus: Annotated[int, Meta(ge=0, le=100_000)] = 0
    gpu_model: Name | None = None
    gpus_per_node: Annotated[int, Meta(ge=1, le=1024)] | None = None
    history_days: Annotated[float, Meta(gt=0, le=3660)] | None = None


class JobNow(Struct, frozen=True):
    """Predicted outcome of a job now.

    ``state``: it ``runs``; it ``leaves`` (it was stopped earlier, and holds its GPUs until it has
    left); its GPUs are ``promised`` and other jobs are leaving them; or it ``waits``, with the
    reason. ``preempted``: it is paused or loses workers in the process, at a cost of
    ``lost_gpu_s``.
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
    """Job in both pools; ``gpus`` is its total request."""

    id: str
    name: str
    project: str
    user: str
    gpus: int
    before: JobNow
    after: JobNow


class ProjectNow(Struct, frozen=True):
    """Project with its children, in GPUs. A null ``quota`` or ``limit`` is no limit.

    ``running`` and ``waiting`` count jobs. ``preempted`` counts the jobs that are preempted.
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
    """Project in both pools, null in a pool that lacks it."""

    name: str
    before: ProjectNow | None
    after: ProjectNow | None


class PoolGpus(Struct, frozen=True):
    """GPUs available for training, and those that running jobs hold."""

    gpus: int
    allocated: int


class ReplayFigures(Struct, frozen=True):
    """Results of a replay in a pool; the keys are those of ``benchpool replay``.

    A job's wait is all time without progress. Short jobs run less than an hour.
    ``allocated_utilisation``: share of the pool's GPU seconds that jobs held. ``refused``: jobs
    that a budget of GPU-hours rejected; they were submitted again in the next month.
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
    """Results of a replay for one project; ``lost_gpu_h`` is the cost of pauses."""

    mean_wait_h: float
    p95_wait_h: float
    preemptions: int
    lost_gpu_h: float


class ProjectReplay(Struct, frozen=True):
    """Replay of one project in both pools.

    ``gpu_h`` is the work of its jobs. ``why`` explains longer waits after the change, empty for
    none.
    """

    name: str
    jobs: int
    gpu_h: float
    before: ProjectWaits
    after: ProjectWaits
    why: str = ""


class WorkloadWhatIf(Struct, frozen=True):
    """Replay of the same jobs in both pools. ``left_out`` jobs could never run in one pool.

    ``why`` explains each figure that gets worse, by its key.
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

    ``changes`` and ``warnings`` are those of ``config check``. ``people`` has a sentence for each
    user whose jobs would be affected. ``jobs`` are the affected jobs, oldest first, and
    ``jobs_left_out`` counts those that did not fit into the answer. ``history`` is present if it
    was requested.
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
