"""Jobs as their readers see them: states, reasons, attempts, and what is done to a job."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.deadlines import DeadlineStanding
from benchpool_scheduler.contract.job_usage import JobUsage
from benchpool_scheduler.contract.parameters import Parameters
from benchpool_scheduler.contract.scalars import Name
from benchpool_scheduler.contract.spec import SELF_TEST, JobSpec, Tag


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


NOT_DELIVERED = "results-not-delivered"
"""Code of the reason of a job that has succeeded and whose results did not come home."""


class Progress(Struct, frozen=True):
    """What the job last said of itself; ``fraction`` is between 0 and 1.

    ``fell_from`` is how far an earlier attempt was, where this one is not as far: what had not been
    saved is done again.
    ``ends`` is when it will be at 1 at the pace of this attempt, while it runs; null where that is
    not known.
    """

    fraction: float | None
    text: str | None
    updated: datetime
    fell_from: float | None = None
    ends: datetime | None = None


class EstimatedStart(Struct, frozen=True):
    """The start as a range into which four of five starts fall; a bound not known is null.

    ``basis`` says in words what it rests on, e.g. "learned from 14 runs of its user".
    """

    earliest: datetime | None
    likely: datetime | None
    latest: datetime | None
    basis: str | None = None


class EstimateHorizon(Struct, frozen=True):
    """How true estimates were whose likely start was so many seconds away; null has no end.

    Of ``starts``, so many fell inside what was said, came ``before`` it, and ``after`` it.
    """

    up_to_s: float | None
    starts: int
    inside: int
    before: int
    after: int


class StartEstimates(Struct, frozen=True):
    """How true the estimates of starts were in this pool, of the newest starts.

    ``wanted`` is the part that should fall inside.
    """

    wanted: float
    horizons: list[EstimateHorizon]


class Preemption(Struct, frozen=True, rename={"for_": "for"}):
    """One pause (R23): when, for whom, by which rule, at what cost.

    ``lost_gpu_s`` is an estimate until ``unsaved_gpu_s`` is known: from then on it is the GPU time
    since the job last saved, and from ``resumed_at`` on with that of the restart. ``cost`` says so
    in words. Where a person asked, ``by`` is who, with the ``reason`` given, and no rule.
    """

    at: datetime
    for_: str
    rule: str
    lost_gpu_s: float
    resumed_at: datetime | None
    ended_at: datetime | None = None
    unsaved_gpu_s: float | None = None
    restart_gpu_s: float | None = None
    saved_at: datetime | None = None
    saved_step: int | None = None
    by: str | None = None
    reason: str = ""
    cost: str = ""


class PauseMoment(Struct, frozen=True):
    """Where the newest pause of a job stands, in words: ``saving`` until ``until``, ``saved`` when
    it has left its GPUs, ``back`` in the attempt that resumed it. ``at`` is when that began.
    """

    stage: Literal["saving", "saved", "back"]
    text: str
    at: datetime
    until: datetime | None


class TrialPlace(Struct, frozen=True):
    """As which trial of which sweep a job runs; of an array, as which of its tasks in turn."""

    sweep: str
    name: str
    trial: int
    array: bool = False


class AwaitedJob(Struct, frozen=True):
    """A job or an array that another one is to run after; ``outcome`` is how it ended, null before.

    ``tasks``: so many tasks the array has whose id ``job`` then is; 0 for a job.
    """

    job: str
    name: str
    outcome: State | None
    tasks: int = 0


class TrackerRun(Struct, frozen=True):
    """A run of the job in a tracker (W&B, MLflow, …), as the job tells it.

    ``url`` is where people look at it: http or https, without user, password and query.
    """

    tracker: Annotated[str, Meta(max_length=30)]
    url: Annotated[str, Meta(max_length=1000)]


class TrackerLink(TrackerRun, frozen=True):
    """The way to a run in a tracker; ``text`` names tracker and host."""

    text: str


class Job(Struct, frozen=True):
    """A job as every verb prints it (formats, section 5): exactly these keys.

    ``actions`` names the operations that would change something about it now. ``metrics`` are the
    newest values of the first names that it reports, until it has ended. ``note`` is what its
    people wrote about it. ``in_line_since`` is when it first joined the queue: null while it waits
    for the jobs that it ``awaits``. ``deadline_standing`` is whether it will have ended by its
    ``deadline``.
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
    time_limit_s: int | None = None
    gpu_models: Annotated[tuple[str, ...], Meta(title="GPU models")] = ()
    pause: PauseMoment | None = None
    metrics: dict[str, float] = {}
    note: Annotated[str, Meta(title="Note")] = ""
    parameters: Annotated[Parameters, Meta(title="Parameters")] = {}
    trial: TrialPlace | None = None
    awaits: list[AwaitedJob] = []
    in_line_since: datetime | None = None
    tracker_runs: list[TrackerLink] = []
    deadline: datetime | None = None
    deadline_standing: DeadlineStanding | None = None


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
    ``cpus`` and ``memory_gib`` are what each worker asks for, named by the job or given by the
    pool; 0 asks for none.
    """

    image: str | None
    home: bool
    text: str
    cpus: float = 0
    memory_gib: float = 0


class Kept(Struct, frozen=True):
    """Until when an ended job and its files of each kind are kept; some may be gone already.

    A job that many newer ones follow goes earlier (``retention.ended_jobs``).
    """

    job: datetime
    checkpoints: datetime
    results: datetime
    logs: datetime


class JobDetail(Struct, frozen=True):
    """Answer of ``show``: the job and its attempts; ``container`` is null on a workstation.

    ``fixed`` names what ``change`` would be refused now, of what it can change at all. ``kept`` is
    null until the job has ended. ``pauses`` are all, also those that a person asked for. ``usage``
    is null until it has ended, and where it never had a GPU. ``retried`` says after which
    failures it was tried again, empty where there were none.
    """

    job: Job
    attempts: list[Attempt]
    container: Container | None = None
    fixed: list[str] = []
    kept: Kept | None = None
    pauses: list[Preemption] = []
    usage: JobUsage | None = None
    retried: str = ""

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
    deadline: DeadlineStanding | None = None


class Preview(Struct, frozen=True):
    """What would happen if this were submitted now; nothing is kept.

    ``starts`` is ``now``, ``after-reclaim`` (others give back first), ``waits`` or ``never``.
    ``text`` says it in a sentence, as dialog and terminal show it, and on a cluster in a second one
    what the job finds there, and whether it will meet its ``deadline``.
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
    deadline: DeadlineStanding | None = None


class JobsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs: the caller's own, or ``all`` that it may see; newest first."""

    all: Annotated[bool, Meta(description="All jobs that you may see.")] = False
    project: Annotated[Name, Meta(description="Only jobs of this project.")] | None = None
    state: Annotated[State, Meta(description="Only jobs in this state.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    tag: Annotated[Tag, Meta(description="Only jobs with this tag.")] | None = None
    search: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=200,
                description="Only jobs with all of these words in name, id, user, project or tags.",
            ),
        ]
        | None
    ) = None
    offset: Annotated[
        int, Meta(ge=0, le=10_000_000, description="Leave out so many of the newest.")
    ] = 0
    user: (
        Annotated[Name, Meta(description="Only jobs of this user, of those that you may see.")]
        | None
    ) = None
    live: Annotated[bool, Meta(description="Only jobs that have not ended.")] = False
    reason: (
        Annotated[
            str,
            Meta(
                max_length=64,
                pattern=r"^[a-z][a-z-]*$(?!\n)",
                description="Only jobs that wait, are paused or failed for this reason, such as "
                "pool-full.",
            ),
        ]
        | None
    ) = None

    def finds(self, *texts: str) -> bool:
        """Tell whether all words of the search stand in these texts, in whatever case.

        >>> JobsQuery(search="resnet SUSAN").finds("ResNet-lr", "susan")
        True
        """
        if self.search is None:
            return True
        text = "\n".join(texts).casefold()
        return all(word in text for word in self.search.casefold().split())

    def admits(self, project: str, spec: JobSpec) -> bool:
        """Tell whether a job of a project that asks for this is among them, whatever its state."""
        if SELF_TEST in spec.tags and self.tag != SELF_TEST:
            return False
        return self.project in (None, project) and (self.tag is None or self.tag in spec.tags)


class JobDiscard(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``discard``: the kinds of files of an ended job that are deleted for good."""

    results: Annotated[bool, Meta(description="Delete what it brought home to the pool.")] = False
    checkpoints: Annotated[bool, Meta(description="Delete its checkpoints.")] = False
    logs: Annotated[bool, Meta(description="Delete its logs.")] = False
