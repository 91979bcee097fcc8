"""Jobs in API answers: states, reasons, attempts, and queries for jobs."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract import renamed
from benchpool_scheduler.contract.deadlines import DeadlineStanding
from benchpool_scheduler.contract.job_usage import JobUsage
from benchpool_scheduler.contract.parameters import Parameters
from benchpool_scheduler.contract.scalars import Name
from benchpool_scheduler.contract.spec import SELF_TEST, JobSpec, Tag


class State(StrEnum):
    """State of a job (design, section 4)."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
"""Final states."""


class Reason(Struct, frozen=True):
    """Why a job waits (R22): a code of the closed list, a sentence, its numbers, the remedy."""

    code: str
    text: str
    numbers: dict[str, int | float | str | None]
    remedy: str


NOT_DELIVERED = "results-not-delivered"
"""Reason code of a job that succeeded but whose results were not delivered."""


class Progress(Struct, frozen=True):
    """Last progress report of a job; ``fraction`` is between 0 and 1.

    ``previous_progress`` is the progress of an earlier attempt that this attempt has not reached
    again: unsaved work is repeated. ``ends`` is when a running job reaches 1 at the pace of this
    attempt, null where unknown.
    """

    fraction: float | None
    text: str | None
    updated: datetime
    previous_progress: float | None = None
    ends: datetime | None = None
    fell_from: Annotated[float | None, renamed.former("previous_progress")] = None

    def __post_init__(self) -> None:
        renamed.agree(self, "previous_progress", "fell_from")


class EstimatedStart(Struct, frozen=True):
    """Estimated start as a range into which four of five starts fall. An unknown bound is null.

    ``basis`` is the basis of the estimate in words, e.g. "learned from 14 runs of its user".
    """

    earliest: datetime | None
    likely: datetime | None
    latest: datetime | None
    basis: str | None = None


class EstimateHorizon(Struct, frozen=True):
    """Accuracy of estimates up to ``up_to_s`` seconds before the start; null has no end.

    Of ``starts``, ``inside`` counts those in the estimated range, ``before`` and ``after`` those
    outside it.
    """

    up_to_s: float | None
    starts: int
    inside: int
    before: int
    after: int


class StartEstimates(Struct, frozen=True):
    """Accuracy of the estimated starts in this pool, for the newest starts.

    ``wanted`` is the share that should fall into the range.
    """

    wanted: float
    horizons: list[EstimateHorizon]


class Preemption(Struct, frozen=True, rename={"for_": "for"}):
    """Pause of a job (R23): when, for whom, by which rule, at what cost.

    ``lost_gpu_s`` is an estimate until ``unsaved_gpu_s`` is known. From then on it is the GPU time
    since the last checkpoint, and after ``resumed_at`` it includes the restart. ``cost`` is the
    cost in words. If a user paused the job, ``by`` is that user, ``reason`` is the given reason,
    and there is no rule.
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
    """Stage of the newest pause of a job, with a sentence.

    The stage is ``saving`` until ``until``, ``saved`` when the job has left its GPUs, and ``back``
    in the attempt that resumed it. ``at`` is when the stage began.
    """

    stage: Literal["saving", "saved", "back"]
    text: str
    at: datetime
    until: datetime | None


class TrialPlace(Struct, frozen=True):
    """Place of a job in a sweep: its trial, or its task of an array."""

    sweep: str
    name: str
    trial: int
    array: bool = False


class AwaitedJob(Struct, frozen=True):
    """Job or array that another job runs after; ``outcome`` is how it ended, null before.

    For an array, ``job`` is its id and ``tasks`` is its number of tasks. ``tasks`` is 0 for a job.
    """

    job: str
    name: str
    outcome: State | None
    tasks: int = 0


class TrackerRun(Struct, frozen=True):
    """Run of the job in a tracker (W&B, MLflow, …), as the job reports it.

    ``url`` is the address of its page: http or https, without user, password and query.
    """

    tracker: Annotated[str, Meta(max_length=30)]
    url: Annotated[str, Meta(max_length=1000)]


class TrackerLink(TrackerRun, frozen=True):
    """Link to a run in a tracker; ``text`` names tracker and host."""

    text: str


class Job(Struct, frozen=True):
    """Job as every verb prints it (formats, section 5), with exactly these keys.

    ``actions`` names the operations that would have an effect on it now. ``metrics`` are the newest
    values of its first metrics, until it has ended. ``metrics_updated`` is when its newest report
    of metrics arrived, and differs for each report. ``note`` is the note of its users.
    ``in_line_since`` is when it first joined the queue, null while it waits for the jobs that it
    ``awaits``. ``deadline_standing`` is the forecast for its ``deadline``.
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
    metrics_updated: datetime | None = None
    note: Annotated[str, Meta(title="Note")] = ""
    parameters: Annotated[Parameters, Meta(title="Parameters")] = {}
    trial: TrialPlace | None = None
    awaits: list[AwaitedJob] = []
    in_line_since: datetime | None = None
    tracker_runs: list[TrackerLink] = []
    deadline: datetime | None = None
    deadline_standing: DeadlineStanding | None = None


class Attempt(Struct, frozen=True):
    """Start of a job.

    ``nodes`` has the node of each worker, by worker number. It has more entries than the job has
    workers if some left and others replaced them.
    """

    attempt: int
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    ended_by: str | None
    gpus: list[str]
    nodes: list[str]


class Container(Struct, frozen=True):
    """Environment of a job on a cluster.

    ``image`` is null for the pool's own image. ``home`` is whether the user's home is mounted;
    otherwise the job works on a copy of the submitted files. ``text`` explains both. ``cpus`` and
    ``memory_gib`` are the requests of each worker, set by the job or by the pool; 0 requests none.
    """

    image: str | None
    home: bool
    text: str
    cpus: float = 0
    memory_gib: float = 0


class Kept(Struct, frozen=True):
    """Ends of the retention of an ended job and its files. Some files may be gone already.

    A job is removed earlier if many newer jobs follow it (``retention.ended_jobs``).
    """

    job: datetime
    checkpoints: datetime
    results: datetime
    logs: datetime


class JobDetail(Struct, frozen=True):
    """Answer of ``show``: the job and its attempts. ``container`` is null on a workstation.

    ``fixed`` names the changeable fields that ``change`` would reject now. ``kept`` is null until
    the job has ended. ``pauses`` are all pauses, including those by users. ``usage`` is null until
    the job has ended, and if it never had a GPU. ``retried`` names the failures after which the job
    was retried, empty for none.
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
        """Return the maximum number of workers of an attempt, which bounds the logs and results."""
        return max((len(attempt.nodes) for attempt in self.attempts), default=1)


class Why(Struct, frozen=True):
    """Answer of ``why``: the reason why a job waits."""

    job: str
    reason: Reason | None
    estimated_start: EstimatedStart | None
    would_start_with: str | None
    deadline: DeadlineStanding | None = None


class Preview(Struct, frozen=True):
    """Predicted outcome of a submission now; nothing is stored.

    ``starts`` is ``now``, ``after-reclaim`` (GPUs are reclaimed first), ``waits`` or ``never``.
    ``text`` is the prediction in a sentence. On a cluster a second sentence describes the
    environment of the job. It also states whether the job will meet its ``deadline``.
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
    """Filter of jobs, newest first: the caller's own, or with ``all`` every job that it may see."""

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
        int, Meta(ge=0, le=10_000_000, description="Number of newest jobs to skip.")
    ] = 0
    user: Annotated[Name, Meta(description="Only jobs of this user that you may see.")] | None = (
        None
    )
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
        """Return whether all words of the search occur in these texts, ignoring case.

        >>> JobsQuery(search="resnet SUSAN").finds("ResNet-lr", "susan")
        True
        """
        if self.search is None:
            return True
        text = "\n".join(texts).casefold()
        return all(word in text for word in self.search.casefold().split())

    def admits(self, project: str, spec: JobSpec) -> bool:
        """Return whether the filter matches the project and the spec of a job, in any state."""
        if SELF_TEST in spec.tags and self.tag != SELF_TEST:
            return False
        return self.project in (None, project) and (self.tag is None or self.tag in spec.tags)


class JobDiscard(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``discard``: kinds of files of an ended job that are deleted permanently."""

    results: Annotated[bool, Meta(description="Delete what it brought home to the pool.")] = False
    checkpoints: Annotated[bool, Meta(description="Delete its checkpoints.")] = False
    logs: Annotated[bool, Meta(description="Delete its logs.")] = False
