"""The pool as its readers see it: GPUs, quotas, projects, health."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name


class UserQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose: the caller's own unless said otherwise."""

    user: Annotated[Name, Meta(description="Another user, for those who may see it.")] | None = None


class StatusQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """With every GPU, or without: in a large pool the list is longer than all the rest."""

    gpus: bool = True


class HeldBuild(Struct, frozen=True):
    """Build GPUs held by one notebook server; the default server's name is empty."""

    server: str
    gpus: list[str]


class BuildQuota(Struct, frozen=True):
    """A user's fixed quota, the rule it came from, what holds it, what is free of it."""

    quota: int
    rule: str
    held: list[HeldBuild]
    free: int


class ProjectQuota(Struct, frozen=True):
    """One project of a user: ``quota`` and ``limit`` are null where there is no bound."""

    name: str
    quota: int | None
    fair_share: int
    allocated: int
    limit: int | None
    waiting: int


class Quota(Struct, frozen=True):
    """Answer of ``quota``."""

    user: str
    build: BuildQuota
    projects: list[ProjectQuota]


class GpuState(StrEnum):
    """What a GPU is doing, as pool page and ``status`` name it."""

    TRAIN_WITHIN_QUOTA = "train-within-quota"
    TRAIN_OVER_QUOTA = "train-over-quota"
    BUILD_HELD = "build-held"
    BUILD_FREE = "build-free"
    FREE = "free"
    FOREIGN = "foreign"
    BROKEN = "broken"


class Gpu(Struct, frozen=True):
    """One GPU; holder fields are null for readers who may not see them."""

    uuid: str
    index: int
    model: str
    node: str
    simulated: bool
    state: GpuState
    memory_mib: int | None
    user: str | None
    job: str | None
    server: str | None
    note: str | None


class Health(Struct, frozen=True):
    """The scheduler's own state; ``problems`` are sentences, empty when all is well."""

    ok: bool
    passes: int
    last_pass_ms: float
    problems: list[str]


class Status(Struct, frozen=True):
    """Answer of ``status``: the pool in one object, with its sentence.

    ``bench_line`` servers wait in line for a bench.
    """

    text: str
    simulated: bool
    gpus: list[Gpu]
    counts: dict[GpuState, int]
    projects: list[ProjectQuota]
    queue_length: int
    running: int
    health: Health
    bench_line: int = 0


class Liveness(Struct, frozen=True):
    """Answer of ``health``: the service answers. How it fares is in ``Status.health``."""

    ok: bool
