"""Jobs as their readers see them: states, reasons, attempts, and what is done to a job."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name
from benchpool_scheduler.contract.spec import JobSpec, Tag


class State(StrEnum):
    """The life of a job (design, section 4)."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
"""The states that nothing follows."""


class Reason(Struct, frozen=True):
    """Why a job waits (R22): a code of the closed list, a sentence, its numbers, the remedy."""

    code: str
    text: str
    numbers: dict[str, int | float | str | None]
    remedy: str


class Progress(Struct, frozen=True):
    """What the job last said of itself; ``fraction`` is between 0 and 1."""

    fraction: float | None
    text: str | None
    updated: datetime


class EstimatedStart(Struct, frozen=True):
    """The start as a range; a bound that is not known is null."""

    earliest: datetime | None
    likely: datetime | None
    latest: datetime | None


class Preemption(Struct, frozen=True, rename={"for_": "for"}):
    """One pause for somebody else (R23): when, for whom, by which rule, at what cost."""

    at: datetime
    for_: str
    rule: str
    lost_gpu_s: float
    resumed_at: datetime | None


class Job(Struct, frozen=True):
    """A job as every verb prints it (formats, section 5): exactly these keys.

    ``actions`` names the operations that would change something about it now.
    """

    id: str
    name: str
    project: str
    user: str
    state: State
    reason: Reason | None
    gpus: int
    workers: int
    min_workers: int
    priority: int
    preemptible: bool
    over_quota: bool
    attempt: int
    submitted: datetime
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    progress: Progress | None
    estimated_start: EstimatedStart | None
    preemptions: list[Preemption]
    url: str
    actions: list[str] = []
    tags: Annotated[tuple[str, ...], Meta(title="Tags")] = ()


class Attempt(Struct, frozen=True):
    """One start of a job.

    ``nodes`` has that of each worker by its number. They are more than the job has workers where
    some left and others came in their place.
    """

    attempt: int
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    ended_by: str | None
    gpus: list[str]
    nodes: list[str]


class Container(Struct, frozen=True):
    """What a job finds on a cluster: its image (null for the pool's own), and whether its user's
    home is mounted, else it works on a copy of what was sent. ``text`` says both, with why.
    """

    image: str | None
    home: bool
    text: str


class JobDetail(Struct, frozen=True):
    """Answer of ``show``: the job and its attempts; ``container`` is null on a workstation.

    ``fixed`` names what ``change`` would be refused now, of what it can change at all.
    """

    job: Job
    attempts: list[Attempt]
    container: Container | None = None
    fixed: list[str] = []

    @property
    def most_workers(self) -> int:
        """Most workers of an attempt; there may be logs and results of so many."""
        return max((len(attempt.nodes) for attempt in self.attempts), default=1)


class Why(Struct, frozen=True):
    """Answer of ``why``."""

    job: str
    reason: Reason | None
    estimated_start: EstimatedStart | None
    would_start_with: str | None


class Preview(Struct, frozen=True):
    """What would happen if this were submitted now; nothing is kept.

    ``starts`` is ``now``, ``after-reclaim`` (others give back first), ``waits`` or ``never``.
    ``text`` says it in a sentence, as dialog and terminal show it, and on a cluster in a second one
    what the job finds there.
    """

    project: str
    gpus: int
    within_quota: int
    over_quota: int
    starts: Literal["now", "after-reclaim", "waits", "never"]
    text: str
    reason: Reason | None
    estimated_start: EstimatedStart | None
    container: Container | None = None


class JobsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs: the caller's own, or ``all`` that it may see; newest first."""

    all: Annotated[bool, Meta(description="All jobs that you may see.")] = False
    project: Annotated[Name, Meta(description="Only jobs of this project.")] | None = None
    state: Annotated[State, Meta(description="Only jobs in this state.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    tag: Annotated[Tag, Meta(description="Only jobs with this tag.")] | None = None

    def admits(self, project: str, spec: JobSpec) -> bool:
        """Tell whether a job of a project that asks for this is among them, whatever its state."""
        return self.project in (None, project) and (self.tag is None or self.tag in spec.tags)
