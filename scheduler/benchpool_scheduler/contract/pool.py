"""Pool in API answers: GPUs, quotas, projects, health."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract import renamed
from benchpool_scheduler.contract.scalars import Name


class UserQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """User of the query; the caller by default."""

    user: Annotated[Name, Meta(description="Another user that you may see.")] | None = None


class StatusQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the answer lists every GPU. In a large pool that list is longer than all the rest."""

    gpus: bool = True


class ReclaimRequest(Struct, frozen=True):
    """Request of an administrator to release a bench. It stops nothing."""

    by: str
    at: datetime
    reason: str


class HeldBuild(Struct, frozen=True):
    """Build GPUs held by one notebook server. The default server's name is empty.

    ``reclaim_request`` is an administrator's request to release them, null for none.
    """

    server: str
    gpus: list[str]
    reclaim_request: ReclaimRequest | None = None
    asked_back: Annotated[ReclaimRequest | None, renamed.former("reclaim_request")] = None

    def __post_init__(self) -> None:
        renamed.agree(self, "reclaim_request", "asked_back")


class BuildQuota(Struct, frozen=True):
    """Fixed quota of a user, the rule that sets it, the GPUs held, and the free rest.

    ``lent`` counts the GPUs of the user's parked benches. No server of the user holds them, but
    they come back and so count in the quota.
    """

    quota: int
    rule: str
    held: list[HeldBuild]
    free: int
    lent: int = 0


class GpuHours(Struct, frozen=True):
    """GPU-hours used in this calendar month, and the budget. It is renewed at ``renewed``.

    Above ``soft`` the weight falls. From ``hard`` on, new jobs are rejected. Null is no limit.
    ``text`` is the budget in words.
    """

    used: float
    soft: float | None
    hard: float | None
    renewed: datetime
    text: str


class ReservedGpus(Struct, frozen=True):
    """GPUs that a reservation adds to a quota until it ends; ``text`` describes it in words."""

    name: str
    gpus: int
    until: datetime
    text: str


class ProjectQuota(Struct, frozen=True):
    """Project of a user. ``quota`` and ``limit`` are null for no limit.

    ``guaranteed`` is the quota. While the project requests more, it includes the project's part of
    its parent's guarantee beyond the quotas of all children. It is null for no limit. ``parent`` is
    the project above, null at the top.

    ``reclaimed_gpus`` counts over-quota GPUs that were reclaimed in the last week from its jobs
    and those of the projects below it, in ``pauses`` pauses. ``gpu_hours`` is null without a
    monthly budget. ``reserved`` is the part of ``quota`` and ``limit`` that is limited in time.
    """

    name: str
    quota: int | None
    fair_share: int
    allocated: int
    limit: int | None
    waiting: int
    parent: str | None = None
    reclaimed_gpus: int = 0
    pauses: int = 0
    gpu_hours: GpuHours | None = None
    reserved: list[ReservedGpus] = []
    guaranteed: int | None = None
    gave_back: Annotated[int, renamed.former("reclaimed_gpus")] = 0

    def __post_init__(self) -> None:
        renamed.agree(self, "reclaimed_gpus", "gave_back")


def as_tree(projects: Sequence[ProjectQuota]) -> list[tuple[int, ProjectQuota]]:
    """Return each project after its parent, with the number of its ancestors.

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
    """Disk use of a user's stored files of one kind, and its limit.

    Attributes:
        part: ``results`` or ``checkpoints``.
        bytes: Disk use, in bytes.
        limit: Maximum disk use, in bytes. A user above it cannot submit further jobs.
    """

    part: str
    bytes: int
    limit: int


class Quota(Struct, frozen=True):
    """Answer of ``quota``. ``files`` lists each kind that has a limit.

    ``gpu_hours`` is the user's own budget for jobs and benches, null for none. ``values_gib`` is
    the maximum size of a notebook's values that one job may take along, in GiB.
    """

    user: str
    build: BuildQuota
    projects: list[ProjectQuota]
    files: list[FilesQuota] = []
    gpu_hours: GpuHours | None = None
    values_gib: int = 1


class GpuState(StrEnum):
    """State of a GPU, as named by the pool page and ``status``."""

    TRAIN_WITHIN_QUOTA = "train-within-quota"
    TRAIN_OVER_QUOTA = "train-over-quota"
    BUILD_HELD = "build-held"
    BUILD_FREE = "build-free"
    FREE = "free"
    CLOSED = "closed"
    FOREIGN = "foreign"
    BROKEN = "broken"


class Gpu(Struct, frozen=True):
    """GPU of the pool. Holder fields are null for readers who may not see them.

    ``idle_since`` is set on a bench without activity seen by the Hub since then, for over an hour.
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
    """State of the scheduler. ``problems`` are sentences, empty when it is healthy."""

    ok: bool
    passes: int
    last_pass_ms: float
    problems: list[str]


class Status(Struct, frozen=True):
    """Answer of ``status``: the pool in one object, with a sentence.

    ``bench_line`` is the number of servers in the queue for a bench. The web pages are below
    ``url``.
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
    """Answer of ``health``: the service answers. Its condition is in ``Status.health``.

    ``start`` identifies the start of ``benchpool up`` to which the service belongs. It is left out
    on a cluster.
    """

    ok: bool
    start: str | None = None
