"""Use and waste: where every GPU-hour of a range of time went."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct


class UseClass(StrEnum):
    """The class of GPU time; every second of every GPU is in exactly one."""

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
    """By what GPU time is added up."""

    USER = "user"
    PROJECT = "project"
    CLASS = "class"
    NODE = "node"
    MODEL = "model"


class UseQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which time, and by what its GPU-hours are added up; ``month`` goes before the others."""

    by: Annotated[UseBy, Meta(description="One row for each of these.")] = UseBy.PROJECT
    begin: Annotated[datetime, Meta(tz=True, description="From this time on.")] | None = None
    end: Annotated[datetime, Meta(tz=True, description="Until this time.")] | None = None
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
    """How long jobs waited that started first in the range, in seconds."""

    jobs: int
    p50_s: float
    p95_s: float


class UseRow(Struct, frozen=True, kw_only=True):
    """GPU time of one user, project, class, node or model, or of all together.

    Attributes:
        name: Null for what nobody held, and for benches where rows are projects.
        rank: By hours that were held, from 1; null where nobody held them.
        gpu_h: GPU-hours by class; ``held_gpu_h``: those that a bench or a job had.
        coverage: What part of the time that could be measured was, 0 to 1.
        efficiency: Mean activity of the multiprocessors while a kernel ran; null where it was not
            measured, which is not the same as 0.
        energy_kwh: Of what was measured; null where no energy was.
        cost: Of what was held, by the prices of the configuration; null without prices.
        waits: Null where no job started, and for rows that are no people and no projects.
        preemptions_given: How often its jobs made way for others; ``preemptions_taken``: how often
            others made way for its jobs.
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
        text: The answer in one sentence; ``notes``: what one must know to read the figures.
        time_zone: Whose months and days are meant.
        sight: Whose time is told: of the ``pool``, of one's ``projects``, or one's ``own``.
        currency: Of ``cost``; empty without prices.
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
    """Which history is replayed, and what is enough: 95 % of its jobs wait at most ``wait_s``."""

    days: Annotated[float, Meta(gt=0, le=3660, description="How far back.")] = 30
    wait_s: Annotated[float, Meta(ge=0, le=604_800, description="What 95 % may wait.")] = 600


class EnoughShare(Struct, frozen=True):
    """What a project of its own would have needed as a static share."""

    name: str
    gpus: int


class EnoughGpus(Struct, frozen=True):
    """Answer of ``report/enough``: the fewest GPUs with which 95 % of the jobs wait that long.

    Attributes:
        gpus: Of one pool, shared as this one is; ``present_gpus``: what it has for training.
        static_gpus: Of fixed shares of all projects together; ``projects`` has them singly.
        refused: Jobs that a budget of GPU-hours would have refused until the next month began,
            from which on they count. ``left_out``: those that a budget of 0 refuses for ever.
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
    """Which history is gone through, and from when on a bench counts as idle."""

    days: Annotated[float, Meta(gt=0, le=400, description="How far back.")] = 28
    minutes: (
        Annotated[
            float,
            Meta(
                ge=15,
                le=10_080,
                description="After so many minutes a bench is given back, else after the site's.",
            ),
        ]
        | None
    ) = None


class IdleBench(Struct, frozen=True):
    """What one notebook server of one user would have given back.

    ``times``: how often; ``gpus``: how many it held at most.
    """

    user: str
    server: str
    gpus: int
    times: int
    gpu_h: float


class IdleExempt(Struct, frozen=True, kw_only=True):
    """An exemption from the rule for idle benches, in force or ended.

    Attributes:
        until: Its last day.
        servers: Left out for it in part or whole, with ``gpu_h`` that they would have given back;
            of several that hold for a server, the one that ends last counts.
    """

    who: str
    until: date
    in_force: bool
    why: str
    servers: int
    gpu_h: float


class IdleBenches(Struct, frozen=True, kw_only=True):
    """Answer of ``report/idle-benches``: what a rule would have freed; nothing is given back by it.

    Attributes:
        text: The answer in one sentence; ``notes``: what one must know to read it.
        gpu_h: GPU-hours that would have been free, of ``measured_gpu_h`` on benches.
        minutes: After so many minutes of idleness a bench counts as given back.
        simulated: Some of the GPUs were simulated.
        exemptions: All of the configuration, those that have ended too.
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
