"""The wire types: what HTTP bodies, the command line and the Python client say to each other.

Field names, units and meanings are those of the reference; times are RFC 3339 with zone,
durations seconds, sizes bytes. Bodies are closed: a key that is not declared here is refused.
This module holds data only; who may do what is decided in ``api``, what runs in ``core``.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

API_VERSION = "v1"
"""Version segment of every path: ``/api/v1/...``."""

# ``$`` alone would let a last line feed through; ``(?!\n)`` means the same in every dialect.
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Identifier = Annotated[str, Meta(pattern=r"^[a-z0-9]{26}$(?!\n)")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
GpuCount = Annotated[int, Meta(ge=1, le=1024)]
WorkerCount = Annotated[int, Meta(ge=1, le=4096)]
Priority = Annotated[int, Meta(ge=0, le=1000)]
Seconds = Annotated[int, Meta(ge=1, le=366 * 24 * 3600)]
FilePath = Annotated[str, Meta(min_length=1, max_length=4096)]
Argument = Annotated[str, Meta(max_length=32768)]
Cores = Annotated[float, Meta(ge=0, le=4096)]
Gib = Annotated[float, Meta(ge=0, le=65536)]
ImageName = Annotated[str, Meta(pattern=r"^[^\s\x00-\x20\x7f]{1,500}$(?!\n)")]


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


# --------------------------------------------------------------------------- submission


class ScriptEntry(Struct, frozen=True, forbid_unknown_fields=True, tag="script", tag_field="kind"):
    """Run ``interpreter PATH ARGS...``; the path is relative to the working folder."""

    path: FilePath
    args: list[Argument] = []


class ModuleEntry(Struct, frozen=True, forbid_unknown_fields=True, tag="module", tag_field="kind"):
    """Run ``interpreter -m MODULE ARGS...``."""

    module: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$(?!\n)", max_length=200)]
    args: list[Argument] = []


class CommandEntry(
    Struct, frozen=True, forbid_unknown_fields=True, tag="command", tag_field="kind"
):
    """Run a command as given, without a shell."""

    argv: Annotated[list[Argument], Meta(min_length=1, max_length=4096)]


class NotebookEntry(
    Struct, frozen=True, forbid_unknown_fields=True, tag="notebook", tag_field="kind"
):
    """Execute a notebook, cell by cell; its text is an uploaded object.

    ``name`` is the file name under which the executed copy is returned in the output folder.
    """

    notebook: Sha256
    name: Annotated[str, Meta(pattern=r"^[^/\x00]{1,200}\.ipynb$(?!\n)")]


Entry = ScriptEntry | ModuleEntry | CommandEntry | NotebookEntry


class SnapshotFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the submitted folder; the content is an uploaded object."""

    path: FilePath
    sha256: Sha256
    size: Annotated[int, Meta(ge=0)]
    executable: bool = False


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the submission came from, so that a notebook finds its jobs again."""

    kind: Literal["cells", "notebook", "script", "python", "terminal", "magic", "self-test"]
    path: Annotated[str, Meta(max_length=4096)] | None = None
    cells: Annotated[list[Annotated[str, Meta(max_length=128)]], Meta(max_length=10_000)] = []


class JobSubmission(Struct, frozen=True, forbid_unknown_fields=True):
    """A job as its user asks for it.

    ``gpus``, ``cpus`` and ``memory_gib`` are per worker. ``gpu_models`` are those it accepts, best
    first. All workers share a domain of ``required_level``, or try to at ``preferred_level``
    (a level of the machine room, or ``node``); with ``spread`` they want nodes of their own.
    ``image`` is for clusters: by default jobs run in the pool's own. Without ``working_dir`` the
    job runs in a copy of ``files``; with it (an absolute path) it runs there. What
    it leaves in its output folder is copied to ``output_dir``. ``key`` makes a repeat of the
    same submission harmless.
    """

    entry: Entry
    name: Name | None = None
    project: Name | None = None
    gpus: GpuCount = 1
    workers: WorkerCount = 1
    min_workers: WorkerCount | None = None
    priority: Priority = 50
    preemptible: bool = True
    time_limit_s: Seconds | None = None
    env: dict[
        Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)", max_length=200)], Argument
    ] = {}
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    interpreter: FilePath | None = None
    working_dir: FilePath | None = None
    output_dir: FilePath | None = None
    files: Annotated[list[SnapshotFile], Meta(max_length=100_000)] = []
    source: Source | None = None
    image: ImageName | None = None
    gpu_models: Annotated[list[Name], Meta(max_length=32)] = []
    required_level: Name | None = None
    preferred_level: Name | None = None
    spread: bool = False
    cpus: Cores = 0
    memory_gib: Gib = 0


# --------------------------------------------------------------------------- jobs


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
    """A job as every verb prints it (formats, section 5): exactly these keys."""

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
    """Answer of ``show``: the job and its attempts; ``container`` is null on a workstation."""

    job: Job
    attempts: list[Attempt]
    container: Container | None = None

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


class JobDeleted(Struct, frozen=True):
    """A job whose record was removed from the service by age."""

    id: str


# --------------------------------------------------------------------------- quota, status


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


# --------------------------------------------------------------------------- leases


class NodeRequirement(Struct, frozen=True, forbid_unknown_fields=True):
    """What a label of a machine must be like, as Kubernetes says it; its name is metadata.name."""

    key: Annotated[str, Meta(min_length=1, max_length=317)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []


class Toleration(Struct, frozen=True, forbid_unknown_fields=True):
    """A taint of machines that a server bears, as Kubernetes says it; empty means any."""

    key: Annotated[str, Meta(max_length=317)] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class LeaseRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The spawner asks for build GPUs (R2); ``spawn`` makes a repeat harmless.

    ``groups`` maps each group of the user to its group property ``benchpool.build_quota``
    (null when the group has none). On Kubernetes ``resource`` is what the GPUs are counted as
    (null for whole GPUs), and ``claim`` in ``namespace`` is the volume claim of the user's home:
    only nodes where that volume can be used are chosen, with all labels of ``node_selector``,
    meeting one of the alternatives of ``node_affinity``, where there are any, and whose taints are
    all borne by ``tolerations`` (null bears what jobs bear).
    """

    user: Name
    server: Annotated[str, Meta(max_length=100)]
    spawn: Annotated[str, Meta(min_length=1, max_length=100)]
    gpus: Annotated[int, Meta(ge=1, le=1024)]
    groups: dict[str, int | None] = {}
    gpu_models: list[str] = []
    resource: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    claim: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    namespace: Annotated[str, Meta(min_length=1, max_length=63)] | None = None
    node_selector: dict[str, str] = {}
    node_affinity: Annotated[list[list[NodeRequirement]], Meta(max_length=64)] = []
    tolerations: Annotated[list[Toleration], Meta(max_length=64)] | None = None


class Lease(Struct, frozen=True):
    """Build GPUs held by one notebook server."""

    id: str
    user: str
    server: str
    spawn: str
    gpus: list[str]
    since: datetime


class LineRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The spawner asks for build GPUs and waits in line where none can be had now.

    Asking again keeps the place. ``since`` is when the server first asked, so that a scheduler
    that was restarted gives the same place again; ``hold_s`` is for how long the answer may be
    held back while nothing changes.
    """

    lease: LeaseRequest
    since: datetime | None = None
    hold_s: Annotated[float, Meta(ge=0, le=25)] = 0.0


class LinePlace(Struct, frozen=True):
    """A place in line for build GPUs; ``position`` 1 is the next.

    ``id`` is that of the lease that will be; giving it back leaves the line.
    """

    id: str
    position: int
    length: int
    since: datetime
    reason: Reason
    estimated_start: EstimatedStart | None


class InLine(Struct, frozen=True):
    """A server that waits in line for its build GPUs, as those see it who may see its bench."""

    user: str
    server: str
    gpus: int
    gpu_models: list[str]
    place: LinePlace


class LineAnswer(Struct, frozen=True):
    """Exactly one of both: the lease, or the place in line for it."""

    lease: Lease | None = None
    place: LinePlace | None = None


# --------------------------------------------------------------------------- other bodies


class Missing(Struct, frozen=True, forbid_unknown_fields=True):
    """A list of content hashes: those a client has, or those the service lacks."""

    sha256: Annotated[list[Sha256], Meta(max_length=100_000)]


class ConfigurationChange(Struct, frozen=True):
    """Answer of ``config check`` and ``config apply``: what changes for whom, a line each."""

    applied: bool
    changes: list[str]
    warnings: list[str] = field(default_factory=list)


class ActionReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``pause``, ``resume`` and ``cancel``: the reason is shown to the job's owner."""

    reason: Annotated[str, Meta(max_length=500)] | None = None


class JobChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``change``: what an accepted job is to have from now on; the rest stays as it is.

    ``priority`` is its turn inside its project, higher first. ``workers`` may change while it
    waits; while it runs only for a job with ``min_workers``: more come when there is room, the
    last ones go at once.
    """

    priority: Priority | None = None
    workers: WorkerCount | None = None


class Liveness(Struct, frozen=True):
    """Answer of ``health``: the service answers. How it fares is in ``Status.health``."""

    ok: bool


class LogText(Struct, frozen=True):
    """Part of a log as the event stream sends it.

    ``skipped`` counts bytes that the size bound dropped just before ``offset``.
    """

    attempt: int
    offset: int
    text: str
    skipped: int = 0


class LogEnd(Struct, frozen=True):
    """Last event of a log's stream."""

    attempt: int


class PoolNow(Struct, frozen=True):
    """The pool as an event tells it: part of ``Status``."""

    text: str
    counts: dict[GpuState, int]
    queue_length: int
    running: int
    bench_line: int = 0


class ErrorBody(Struct, frozen=True):
    """One sentence for people, a code for programs, the field it is about, its numbers."""

    code: str
    message: str
    field: str | None
    numbers: dict[str, int | float | str | None]


class ErrorAnswer(Struct, frozen=True):
    """Every answer that is not a good one."""

    error: ErrorBody
