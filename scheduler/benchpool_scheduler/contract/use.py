"""Use and waste: a breakdown of all GPU-hours of a time range."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct


class UseClass(StrEnum):
    """Class of GPU time. Every second of every GPU is in exactly one class."""

    COMPUTING = "computing"
    IDLE_BENCH = "idle-bench"
    IDLE_TRAINING = "idle-training"
    STARTING = "starting"
    LOST = "lost"
    NOT_MEASURED = "not-measured"
    WANTED = "free-wanted"
    FREE = "free"
    RESERVED = "reserved"
    FOREIGN = "foreign"
    BROKEN = "broken"
    NOT_RECORDED = "not-recorded"


class UseBy(StrEnum):
    """Key by which GPU time is grouped."""

    USER = "user"
    PROJECT = "project"
    CLASS = "class"
    NODE = "node"
    MODEL = "model"


class UseQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Time range and grouping of a use report; ``month`` overrides ``begin`` and ``end``."""

    by: Annotated[UseBy, Meta(description="Grouping of the rows.")] = UseBy.PROJECT
    begin: Annotated[datetime, Meta(tz=True, description="Start of the range.")] | None = None
    end: Annotated[datetime, Meta(tz=True, description="End of the range.")] | None = None
    month: (
        Annotated[
            str,
            Meta(
                pattern="^(19[7-9][0-9]|2[0-9]{3})-(0[1-9]|1[0-2])$",
                description="A month such as 2026-10, in the time zone of the pool.",
            ),
        ]
        | None
    ) = None


class UseWaits(Struct, frozen=True):
    """Waits of the jobs that first started in the range, in seconds."""

    jobs: int
    p50_s: float
    p95_s: float


class UseRow(Struct, frozen=True, kw_only=True):
    """GPU time of one user, project, class, node or model, or of all together.

    Attributes:
        name: Null for time without a holder, and for benches where rows are projects.
        rank: Rank by hours held, from 1; null without a holder.
        gpu_h: GPU-hours by class.
        held_gpu_h: GPU-hours held by a bench or a job.
        coverage: Measured share of the measurable time, 0 to 1.
        efficiency: Mean activity of the multiprocessors while a kernel ran. Null is not measured,
            which differs from 0.
        energy_kwh: Energy of the measured time; null where no energy was measured.
        cost: Cost of the held time, by the prices of the configuration; null without prices.
        waits: Null if no job started, and for rows of classes, nodes and models.
        preemptions_given: Number of preemptions of its jobs.
        preemptions_taken: Number of preemptions of other jobs for its jobs.
    """

    name: str | None
    rank: int | None = None
    gpu_h: dict[UseClass, float]
    held_gpu_h: float
    coverage: float | None = None
    simulated: bool = False
    efficiency: float | None = None
    energy_kwh: float | None = None
    cost: float | None = None
    waits: UseWaits | None = None
    preemptions_given: int = 0
    preemptions_taken: int = 0


class UseReport(Struct, frozen=True, kw_only=True):
    """Answer of ``report``.

    Attributes:
        text: Summary in one sentence.
        notes: Remarks needed to read the figures.
        time_zone: Time zone of months and days.
        sight: Scope of the report: the whole ``pool``, the reader's ``projects``, or the reader's
            ``own`` time.
        currency: Currency of ``cost``; empty without prices.
        total: All rows together.
    """

    text: str
    notes: list[str]
    by: UseBy
    begin: datetime
    end: datetime
    time_zone: str
    sight: Literal["pool", "projects", "own"]
    currency: str
    rows: list[UseRow]
    total: UseRow


class EnoughQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """History to replay, and the target: 95 % of its jobs wait at most ``wait_s``."""

    days: Annotated[float, Meta(gt=0, le=3660, description="Days to look back.")] = 30
    wait_s: Annotated[float, Meta(ge=0, le=604_800, description="Wait of 95 % of the jobs.")] = 600


class EnoughShare(Struct, frozen=True):
    """Static share that a single project would have needed."""

    name: str
    gpus: int


class EnoughGpus(Struct, frozen=True):
    """Answer of ``report/enough``: GPUs with which 95 % of the jobs wait at most ``wait_s``.

    Attributes:
        gpus: GPUs of one pool, shared as this one is.
        static_gpus: Sum of fixed shares of all projects.
        present_gpus: GPUs that the pool has for training.
        projects: Fixed share of each project.
        refused: Jobs that a budget of GPU-hours would have delayed to the next month. They count
            from then on.
        left_out: Jobs that a budget of 0 always refuses.
    """

    text: str
    jobs: int
    wait_s: float
    gpus: int
    static_gpus: int
    present_gpus: int
    projects: list[EnoughShare]
    refused: int = 0
    left_out: int = 0


class IdleBenchesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """History to evaluate, and the idle time after which a bench counts as idle."""

    days: Annotated[float, Meta(gt=0, le=400, description="Days to look back.")] = 28
    minutes: (
        Annotated[
            float,
            Meta(
                ge=15,
                le=10_080,
                description="Idle minutes until a bench is released; by default the site's.",
            ),
        ]
        | None
    ) = None


class IdleBench(Struct, frozen=True):
    """Benches of one notebook server that a rule would have released.

    ``times`` is how often. ``gpus`` is the maximum number of GPUs that the server held.
    """

    user: str
    server: str
    gpus: int
    times: int
    gpu_h: float


class IdleExempt(Struct, frozen=True, kw_only=True):
    """Exemption from the rule for idle benches, in force or ended.

    Attributes:
        until: Last day of the exemption.
        servers: Number of servers that it spared fully or partly. If several exemptions hold for a
            server, the one that ends last counts.
        gpu_h: GPU-hours that these servers would have released.
    """

    who: str
    until: date
    in_force: bool
    why: str
    servers: int
    gpu_h: float


class IdleBenches(Struct, frozen=True, kw_only=True):
    """Answer of ``report/idle-benches``: what a rule would have released. It releases nothing.

    Attributes:
        text: Summary in one sentence.
        notes: Remarks needed to read it.
        minutes: Idle time after which a bench counts as released, in minutes.
        gpu_h: GPU-hours that would have been free.
        measured_gpu_h: GPU-hours measured on benches.
        simulated: Some of the GPUs were simulated.
        exemptions: All exemptions of the configuration, including ended ones.
    """

    text: str
    notes: list[str]
    begin: datetime
    end: datetime
    minutes: float
    gpu_h: float
    measured_gpu_h: float
    simulated: bool
    rows: list[IdleBench]
    exemptions: list[IdleExempt] = []
