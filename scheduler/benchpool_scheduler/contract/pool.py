"""The pool as its readers see it: GPUs, quotas, projects, health."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
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


class AskedBack(Struct, frozen=True):
    """An administrator asks the owner of a bench to give it back; nothing is stopped by it."""

    by: str
    at: datetime
    reason: str


class HeldBuild(Struct, frozen=True):
    """Build GPUs held by one notebook server; the default server's name is empty.

    ``asked_back`` is null while nobody asked for them.
    """

    server: str
    gpus: list[str]
    asked_back: AskedBack | None = None


class BuildQuota(Struct, frozen=True):
    """A user's fixed quota, the rule it came from, what holds it, what is free of it.

    ``lent`` GPUs are those of the user's parked benches: nobody's server holds them, and they come
    back, so that they count in the quota.
    """

    quota: int
    rule: str
    held: list[HeldBuild]
    free: int
    lent: int = 0


class GpuHours(Struct, frozen=True):
    """GPU-hours used in this calendar month, and the budget; it begins anew at ``renewed``.

    Past ``soft`` the weight falls; from ``hard`` on new jobs are refused. Null is no bound.
    ``text`` says it in words.
    """

    used: float
    soft: float | None
    hard: float | None
    renewed: datetime
    text: str


class ReservedGpus(Struct, frozen=True):
    """GPUs that a reservation adds to a quota until it is over; ``text`` says it in words."""

    name: str
    gpus: int
    until: datetime
    text: str


class ProjectQuota(Struct, frozen=True):
    """One project of a user: ``quota`` and ``limit`` are null where there is no bound.

    ``guaranteed`` is the quota and, while it asks for more, its part of what the project above is
    guaranteed beyond the quotas of all its projects; null where there is no bound.
    ``parent`` is the project above, null at the top. In the last week its jobs, and those of the
    projects below it, ``gave_back`` so many GPUs beyond its quota to others, in so many ``pauses``.
    ``gpu_hours`` is null where it has no budget of a month. ``reserved`` is what ``quota`` and
    ``limit`` hold for a time only.
    """

    name: str
    quota: int | None
    fair_share: int
    allocated: int
    limit: int | None
    waiting: int
    parent: str | None = None
    gave_back: int = 0
    pauses: int = 0
    gpu_hours: GpuHours | None = None
    reserved: list[ReservedGpus] = []
    guaranteed: int | None = None


def as_tree(projects: Sequence[ProjectQuota]) -> list[tuple[int, ProjectQuota]]:
    """Return projects each behind the one above it, with how many stand above; else as they come.

    >>> rows = [ProjectQuota(name, 0, 0, 0, None, 0, above)
    ...         for name, above in (("b", "a"), ("a", None), ("c", "b"), ("d", "not here"))]
    >>> [(depth, one.name) for depth, one in as_tree(rows)]
    [(0, 'a'), (1, 'b'), (2, 'c'), (0, 'd')]
    """
    names = {one.name for one in projects}
    below: dict[str | None, list[ProjectQuota]] = {}
    for one in projects:
        below.setdefault(one.parent if one.parent in names else None, []).append(one)
    found: list[tuple[int, ProjectQuota]] = []
    coming = [(0, one) for one in reversed(below.get(None, []))]
    while coming:
        depth, one = coming.pop()
        found.append((depth, one))
        coming += [(depth + 1, each) for each in reversed(below.get(one.name, []))]
    return found


class FilesQuota(Struct, frozen=True):
    """What files of one kind of a user's jobs hold that are kept, against their bound.

    Attributes:
        part: ``results`` or ``checkpoints``. ``bytes`` is what they take on the disk; ``limit``
            bytes are allowed: whoever has more gets no further jobs.
    """

    part: str
    bytes: int
    limit: int


class Quota(Struct, frozen=True):
    """Answer of ``quota``; ``files`` of each kind that has a bound.

    ``gpu_hours`` is the user's own budget, of jobs and benches; null where there is none. Of a
    notebook's values ``values_gib`` may go along with one job.
    """

    user: str
    build: BuildQuota
    projects: list[ProjectQuota]
    files: list[FilesQuota] = []
    gpu_hours: GpuHours | None = None
    values_gib: int = 1


class GpuState(StrEnum):
    """What a GPU is doing, as pool page and ``status`` name it."""

    TRAIN_WITHIN_QUOTA = "train-within-quota"
    TRAIN_OVER_QUOTA = "train-over-quota"
    BUILD_HELD = "build-held"
    BUILD_FREE = "build-free"
    FREE = "free"
    CLOSED = "closed"
    FOREIGN = "foreign"
    BROKEN = "broken"


class Gpu(Struct, frozen=True):
    """One GPU; holder fields are null for readers who may not see them.

    ``idle_since``: on a bench of which the Hub has seen nothing since then, for over an hour.
    """

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
    idle_since: datetime | None = None


class Health(Struct, frozen=True):
    """The scheduler's own state; ``problems`` are sentences, empty when all is well."""

    ok: bool
    passes: int
    last_pass_ms: float
    problems: list[str]


class Status(Struct, frozen=True):
    """Answer of ``status``: the pool in one object, with its sentence.

    ``bench_line`` servers wait in line for a bench. The pages for people are below ``url``.
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
    url: str = ""


class Liveness(Struct, frozen=True, omit_defaults=True):
    """Answer of ``health``: the service answers. How it fares is in ``Status.health``.

    ``start`` identifies the start of ``benchpool up`` to which the service belongs; it is left out
    on a cluster.
    """

    ok: bool
    start: str | None = None
