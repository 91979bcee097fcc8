"""``TrainingJob``: the submission, and the state and history of the job."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from benchpool_scheduler.contract import FilePath, Sha256, State
from benchpool_scheduler.contract.causes import MOST_RETRIES
from benchpool_scheduler.contract.changes import WRITTEN
from benchpool_scheduler.contract.spec import Asked
from benchpool_scheduler.resources.declaring import (
    Code,
    Condition,
    GpuName,
    Name100,
    NodeName,
    Numbers,
    ObjectMeta,
    Person,
    PrinterColumn,
    Resource,
    Rule,
    Sentence,
    kind,
)
from benchpool_scheduler.resources.entries import (
    Argument,
    FileSpec,
    Module,
    Notebook,
    Origin,
    Pods,
    Script,
    Topology,
)
from benchpool_scheduler.resources.given import Environment, ParameterTexts
from benchpool_scheduler.resources.progress import MeasuredStatus, ProgressStatus
from benchpool_scheduler.resources.retries import FailureStatus, RetryStatus
from benchpool_scheduler.resources.waiting import AwaitedStatus, EstimatedStartStatus, PlaceStatus


def _about(text: str, **bounds: Any) -> Meta:
    return Meta(description=text, **bounds)


ONE_ENTRY = Rule(
    "(has(self.script) ? 1 : 0) + (has(self.module) ? 1 : 0) + (has(self.command) ? 1 : 0)"
    " + (has(self.notebook) ? 1 : 0) + (has(self.pods) ? 1 : 0) == 1",
    "Give exactly one of script, module, command and notebook.",
)
RENAMED = {"time_limit_s": "timeLimitSeconds"}
"""Names of fields of ``Asked`` that differ from their camel-case form."""


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return RENAMED.get(name) or first + "".join(word.capitalize() for word in others)


if TYPE_CHECKING:
    AskedHere = Asked
else:
    AskedHere = msgspec.defstruct(
        "AskedHere",
        [(it.name, it.type, it.default) for it in msgspec.structs.fields(Asked)],
        rename=_camel,
        frozen=True,
        kw_only=True,
    )
    """Fields of ``Asked``, with their names in a cluster."""


class TrainingJobSpec(
    AskedHere, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Submission of a job: what to run, on how many GPUs, for which user."""

    show_defaults: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        ONE_ENTRY,
        Rule(
            "!has(self.minWorkers) || self.minWorkers <= self.workers",
            "minWorkers is greater than workers; choose from 1 to the number of workers.",
            field=".minWorkers",
        ),
    )

    script: Script | None = None
    module: Module | None = None
    command: Annotated[
        Annotated[list[Argument], Meta(min_length=1, max_length=4096)] | None,
        _about("Command and its arguments, run without a shell."),
    ] = None
    notebook: Notebook | None = None
    pods: Pods | None = None
    name: Annotated[Name100 | None, _about("Display name; by default metadata.name.")] = None
    project: Annotated[
        Name100 | None, _about("Project whose quota it uses; optional if the user has only one.")
    ] = None
    user: Annotated[Person | None, _about("User of the Hub in whose name it runs.")] = None
    image: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1000)] | None,
        _about("Image of the workers, preferably by digest; by default the site's image."),
    ] = None
    env: Environment = msgspec.field(default_factory=dict)
    parameters: ParameterTexts = msgspec.field(default_factory=dict)
    environment: Annotated[
        Sha256 | None,
        _about("Hidden object with the variables of a job submitted through the API."),
    ] = None
    topology: Topology | None = None
    suspend: Annotated[
        bool, _about("Keep the job waiting or paused until this is false again.")
    ] = False
    interpreter: Annotated[
        FilePath | None, _about("Interpreter of script, module and notebook.")
    ] = None
    working_folder: Annotated[
        FilePath | None, _about("Absolute path; without it the job runs in a copy of its files.")
    ] = None
    output_folder: Annotated[
        FilePath | None,
        _about("Absolute path that receives the content of the job's output folder."),
    ] = None
    files: Annotated[list[FileSpec], _about("Files of the job, at most 256.", max_length=256)] = (
        msgspec.field(default_factory=list)
    )
    bundle: Annotated[
        Sha256 | None, _about("Uploaded object with the list of files of the job, for many files.")
    ] = None
    source: Origin | None = None
    key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("Idempotency key: a repeated submission creates no second job."),
    ] = None


_CHANGEABLE = [it for it in msgspec.structs.fields(Asked) if it.name in WRITTEN]

if TYPE_CHECKING:

    class AcceptedSpec(Asked, frozen=True):
        """Fields of a spec that are listed in ``WRITTEN``."""

    class SpecRequests(Asked, frozen=True):
        """Fields of a spec that are listed in ``WRITTEN``, and the name."""

        name: str | None = None
else:
    AcceptedSpec = msgspec.defstruct(
        "AcceptedSpec",
        [(it.name, it.type, it.default) for it in _CHANGEABLE],
        namespace={"__doc__": "Changeable fields of the spec, as last accepted."},
        rename=_camel,
        frozen=True,
        omit_defaults=True,
    )
    """Changeable fields of a spec, as last accepted."""
    SpecRequests = msgspec.defstruct(
        "SpecRequests",
        [("name", str | None, None)],
        bases=(AcceptedSpec,),
        rename=_camel,
        frozen=True,
    )
    """Fields of a spec that users may change at any time. The scheduler adds API changes."""


MAY_CHANGE = frozenset({*SpecRequests.__struct_encode_fields__, "suspend"})
"""Fields of the spec that may change at any time."""
FIXED = tuple(it for it in TrainingJobSpec.__struct_encode_fields__ if it not in MAY_CHANGE)
"""Fields of the spec that cannot change after acceptance (see ``policies``)."""


# --------------------------------------------------------------------------- status


class ReasonStatus(Struct, frozen=True):
    """Why a job waits (R22): a code of the closed list, a sentence, its numbers, the remedy."""

    code: Code
    text: Sentence
    numbers: Numbers = {}
    remedy: Sentence = ""


class StopRequestStatus(
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={"grace_s": "graceSeconds", "for_": "for"},
):
    """Stop request for the job's workers, present until the last worker is gone."""

    kind: Literal["preempt", "pause", "cancel"]
    at: datetime
    grace_s: float = 30.0
    by: Person | None = None
    for_: Annotated[str, Meta(max_length=500)] = ""
    text: Sentence = ""
    claimant: Code | None = None
    held: bool = False
    early: Annotated[
        bool, _about("True if its sweep stopped it because other trials do better.")
    ] = False


class WorkerStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Worker of an attempt, with the GPUs that it holds until it has ended."""

    index: Annotated[int, Meta(ge=0)]
    node: NodeName
    gpus: Annotated[tuple[GpuName, ...], Meta(max_length=1024)]
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    ended_by: Code | None = None
    text: Sentence | None = None
    leaving: bool = False
    failure: FailureStatus | None = None


class AttemptStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Attempt of the job, with its placement."""

    attempt: Annotated[int, Meta(ge=1)]
    decided: datetime
    workers: Annotated[tuple[WorkerStatus, ...], Meta(max_length=4096)]
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    ended_by: Code | None = None
    port: int = 29500
    cpus: Annotated[float, Meta(ge=0)] | None = None
    memory_gib: Annotated[float, Meta(ge=0)] | None = None


class PreemptionStatus(
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={
        "for_": "for",
        "lost_gpu_s": "lostGpuSeconds",
        "resumed_at": "resumedAt",
        "resumed_on": "resumedOn",
        "saved_at": "savedAt",
        "saved_step": "savedStep",
        "unsaved_gpu_s": "unsavedGpuSeconds",
        "restart_gpu_s": "restartGpuSeconds",
    },
):
    """Pause of the job (R23): when, for whom, by which rule or user, at what cost."""

    attempt: Annotated[int, Meta(ge=0)]
    at: datetime
    for_: Annotated[str, Meta(max_length=500)]
    rule: Annotated[str, Meta(max_length=20)]
    lost_gpu_s: float
    gpus: Annotated[int, Meta(ge=0)]
    claimant: Code | None = None
    resumed_at: datetime | None = None
    resumed_on: Annotated[str, Meta(max_length=4096)] | None = None
    needs: Annotated[int, Meta(ge=0)] = 0
    by: Person | None = None
    said: Annotated[str, Meta(max_length=500)] = ""
    ended: datetime | None = None
    saved_at: datetime | None = None
    saved_step: Annotated[int, Meta(ge=0)] | None = None
    saved: float | None = None
    unsaved_gpu_s: float | None = None
    restart_gpu_s: float | None = None


REFUSED = "refused"
"""State of an object that was not accepted and so is not a job."""


class TrainingJobStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """State and history of the job. The scheduler is rebuilt from it after a restart."""

    id: Annotated[Annotated[str, Meta(max_length=26)] | None, _about("Job ID of benchpool.")] = None
    state: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": [*map(str, State), REFUSED]})] | None,
        _about(f"State of the job; `{REFUSED}` if it was not accepted."),
    ] = None
    reason: Annotated[
        ReasonStatus | None, _about("Why it waits, is paused or was not accepted, or how it ended.")
    ] = None
    estimated_start: EstimatedStartStatus | None = None
    user: Person | None = None
    project: Name100 | None = None
    over_quota: bool = False
    workers: Annotated[int, _about("Workers that hold GPUs now.", ge=0)] = 0
    selector: Annotated[str, Meta(max_length=200)] | None = None
    attempt: Annotated[int, _about("Number of the newest attempt.", ge=0)] = 0
    submitted: datetime | None = None
    queued_since: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    stop_request: StopRequestStatus | None = msgspec.field(default=None, name="wish")
    note: Annotated[
        ReasonStatus | None, _about("How it was last paused, queued again or ended.")
    ] = None
    promised: Annotated[
        tuple[PlaceStatus, ...],
        _about("GPUs that other jobs are vacating for it (R20).", max_length=4096),
    ] = ()
    awaits: Annotated[
        tuple[AwaitedStatus, ...], _about("Jobs that must end before it starts.", max_length=64)
    ] = ()
    freed: Annotated[
        datetime | None, _about("Time at which it joined the queue after waiting for other jobs.")
    ] = None
    late_since: Annotated[
        datetime | None, _about("Time since when it is expected to miss its deadline.")
    ] = None
    progress: ProgressStatus | None = None
    measured: MeasuredStatus | None = None
    attempts: Annotated[tuple[AttemptStatus, ...], _about("Oldest first.", max_length=100)] = ()
    preemptions: Annotated[
        tuple[PreemptionStatus, ...], _about("Oldest first.", max_length=100)
    ] = ()
    retried: Annotated[
        tuple[RetryStatus, ...],
        _about("Failures after which it was retried, oldest first.", max_length=MOST_RETRIES),
    ] = ()
    remark: Annotated[str, _about("Remark of its users.", max_length=500)] = ""
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=8)] = ()
    accepted_gpus: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | None, _about("GPUs of each worker, as accepted.")
    ] = None
    accepted_workers: Annotated[
        Annotated[int, Meta(ge=1, le=4096)] | None, _about("Number of workers, as accepted.")
    ] = None
    accepted: Annotated[
        AcceptedSpec | None, _about("Changeable fields of the spec, as last accepted.")
    ] = None
    accepted_least: Annotated[
        Annotated[int, Meta(ge=1, le=4096)] | None,
        _about("Minimum number of workers, as accepted."),
    ] = None
    suspend: Annotated[bool, _about("Last processed value of spec.suspend.")] = False
    observed_generation: Annotated[int, Meta(ge=0)] = 0
    epoch: Annotated[int, _about("Epoch of the leader that wrote this.", ge=0)] = 0
    revision: Annotated[
        int, _about("Number that grows with each write of the scheduler.", ge=0)
    ] = 0


class TrainingJob(Struct, frozen=True):
    """TrainingJob object as read from the API server."""

    metadata: ObjectMeta
    spec: TrainingJobSpec = TrainingJobSpec()
    status: TrainingJobStatus = TrainingJobStatus()


TRAINING_JOBS = Resource(
    kind=kind("trainingjobs", "TrainingJob", namespaced=True),
    spec=TrainingJobSpec,
    status=TrainingJobStatus,
    words=("tj", "tjob"),
    text="A unit of training: workers that get their GPUs together, from the pool.",
    columns=(
        PrinterColumn("Job", ".spec.name", text="Name of the job if it differs from the object's"),
        PrinterColumn("User", ".spec.user"),
        PrinterColumn("Project", ".status.project"),
        PrinterColumn("GPUs", ".spec.gpus", "integer", text="GPUs of each worker"),
        PrinterColumn("Workers", ".spec.workers", "integer"),
        PrinterColumn("State", ".status.state"),
        PrinterColumn("Reason", ".status.reason.code", text="Why it waits, or how it ended"),
        PrinterColumn("Attempt", ".status.attempt", "integer", wide=True),
        PrinterColumn("Starts", ".status.estimatedStart.likely", wide=True),
        PrinterColumn("Exit", ".status.exitCode", "integer", wide=True),
        PrinterColumn("Why", ".status.reason.text", wide=True),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
    scale=(".spec.workers", ".status.workers", ".status.selector"),
)
