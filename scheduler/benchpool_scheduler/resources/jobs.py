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
    "Say what to run with exactly one of script, module, command and notebook.",
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
            "minWorkers is more than workers; choose from 1 to the number of workers.",
            field=".minWorkers",
        ),
    )

    script: Script | None = None
    module: Module | None = None
    command: Annotated[
        Annotated[list[Argument], Meta(min_length=1, max_length=4096)] | None,
        _about("A command and its arguments; no shell reads them."),
    ] = None
    notebook: Notebook | None = None
    pods: Pods | None = None
    name: Annotated[Name100 | None, _about("For people; by default metadata.name.")] = None
    project: Annotated[
        Name100 | None, _about("Whose quota it runs on; may be left out where there is one only.")
    ] = None
    user: Annotated[Person | None, _about("In whose name it runs, as the Hub knows people.")] = None
    image: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1000)] | None,
        _about("Image of the workers, best by digest; by default that of the site."),
    ] = None
    env: Environment = msgspec.field(default_factory=dict)
    parameters: ParameterTexts = msgspec.field(default_factory=dict)
    environment: Annotated[
        Sha256 | None,
        _about("Object with the variables of a job that came in through the API, out of sight."),
    ] = None
    topology: Topology | None = None
    suspend: Annotated[bool, _about("It waits, or is paused, until this is false again.")] = False
    interpreter: Annotated[FilePath | None, _about("Of script, module and notebook.")] = None
    working_folder: Annotated[
        FilePath | None, _about("Absolute; without it the job runs in a copy of its files.")
    ] = None
    output_folder: Annotated[
        FilePath | None, _about("Absolute; gets what the job leaves in its output folder.")
    ] = None
    files: Annotated[list[FileSpec], _about("Its files, when they are few.", max_length=256)] = (
        msgspec.field(default_factory=list)
    )
    bundle: Annotated[
        Sha256 | None, _about("An uploaded object with the list of its files, when they are many.")
    ] = None
    source: Origin | None = None
    key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("Makes a repeat of the same submission harmless."),
    ] = None


_CHANGEABLE = [it for it in msgspec.structs.fields(Asked) if it.name in WRITTEN]

if TYPE_CHECKING:

    class AcceptedSpec(Asked, frozen=True):
        """Fields of a spec that are listed in ``WRITTEN``."""

    class SpecWishes(Asked, frozen=True):
        """Fields of a spec that are listed in ``WRITTEN``, and the name."""

        name: str | None = None
else:
    AcceptedSpec = msgspec.defstruct(
        "AcceptedSpec",
        [(it.name, it.type, it.default) for it in _CHANGEABLE],
        namespace={"__doc__": "What it was last allowed to ask for, of what may change."},
        rename=_camel,
        frozen=True,
        omit_defaults=True,
    )
    """Changeable fields of a spec, as last accepted."""
    SpecWishes = msgspec.defstruct(
        "SpecWishes",
        [("name", str | None, None)],
        bases=(AcceptedSpec,),
        rename=_camel,
        frozen=True,
    )
    """Fields of a spec that users may change at any time. The scheduler adds API changes."""


MAY_CHANGE = frozenset({*SpecWishes.__struct_encode_fields__, "suspend"})
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


class WishStatus(
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
    early: Annotated[bool, _about("Its sweep asked: other trials do better.")] = False


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

    id: Annotated[
        Annotated[str, Meta(max_length=26)] | None, _about("The id by which benchpool calls it.")
    ] = None
    state: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": [*map(str, State), REFUSED]})] | None,
        _about(f"The state of the job; `{REFUSED}` for one that was not accepted."),
    ] = None
    reason: Annotated[
        ReasonStatus | None, _about("Why it waits, is paused, was not accepted, or how it ended.")
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
    wish: WishStatus | None = None
    note: Annotated[
        ReasonStatus | None, _about("What is kept of how it was paused, queued again or ended.")
    ] = None
    promised: Annotated[
        tuple[PlaceStatus, ...],
        _about("GPUs that others are leaving for it (R20).", max_length=4096),
    ] = ()
    awaits: Annotated[
        tuple[AwaitedStatus, ...], _about("The jobs that it is to run after.", max_length=64)
    ] = ()
    freed: Annotated[
        datetime | None, _about("When it joined the queue, where it had waited for other jobs.")
    ] = None
    late_since: Annotated[
        datetime | None, _about("Since when its deadline is not to be met any more.")
    ] = None
    progress: ProgressStatus | None = None
    measured: MeasuredStatus | None = None
    attempts: Annotated[tuple[AttemptStatus, ...], _about("Oldest first.", max_length=100)] = ()
    preemptions: Annotated[
        tuple[PreemptionStatus, ...], _about("Oldest first.", max_length=100)
    ] = ()
    retried: Annotated[
        tuple[RetryStatus, ...],
        _about("Failures after which it was tried again, oldest first.", max_length=MOST_RETRIES),
    ] = ()
    remark: Annotated[str, _about("What its people wrote about it.", max_length=500)] = ""
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=8)] = ()
    accepted_gpus: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | None, _about("GPUs of each worker, as accepted.")
    ] = None
    accepted_workers: Annotated[
        Annotated[int, Meta(ge=1, le=4096)] | None, _about("Workers it is to have, as accepted.")
    ] = None
    accepted: Annotated[
        AcceptedSpec | None, _about("What may change of the spec, as it was accepted last.")
    ] = None
    accepted_least: Annotated[
        Annotated[int, Meta(ge=1, le=4096)] | None, _about("The least it may run with.")
    ] = None
    suspend: Annotated[bool, _about("The value of spec.suspend that was last acted upon.")] = False
    observed_generation: Annotated[int, Meta(ge=0)] = 0
    epoch: Annotated[int, _about("Of the leader that wrote this.", ge=0)] = 0
    revision: Annotated[int, _about("Grows with each write of the scheduler.", ge=0)] = 0


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
        PrinterColumn("Job", ".spec.name", text="Its name, where the object has another one"),
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
