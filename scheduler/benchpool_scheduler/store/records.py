"""The durable records: jobs, attempts, preemptions, leases. Frozen; times are epoch seconds.

They are JSON beside the columns that SQL uses. A new field has a default; a new meaning needs a
migration.
"""

from __future__ import annotations

from msgspec import Struct, field

from benchpool_scheduler.contract.job_usage import JobMeasurements
from benchpool_scheduler.contract.parameters import ParameterValue
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.job_progress import JobProgress as JobProgress
from benchpool_scheduler.store.retries import FailureRecord, RetryRecord
from benchpool_scheduler.store.use_records import CalibrationRecord as CalibrationRecord
from benchpool_scheduler.store.use_records import UseRecord as UseRecord


class Conflict(Exception):
    """Change that would give a GPU a second holder or repeat an ID or key: a caller's error."""


class StopIntent(Struct, frozen=True, omit_defaults=True):
    """Request that a job releases its GPUs; kept until its last worker has ended.

    Attributes:
        kind: What happens to the job when its workers are gone.
        at: When it was decided. ``grace_s``: seconds between notice and kill.
        by: The user who requested it, None when the pool did.
        for_: Beneficiary, as shown to users. ``text``: the sentence for job and user.
        claimant: The job that gets the GPUs (R20).
        held: An administrator paused another user's job: its owner cannot resume it.
        early: Its sweep stopped it, because other trials do better.
    """

    kind: Intent
    at: float
    grace_s: float = 30.0
    by: str | None = None
    for_: str = ""
    text: str = ""
    claimant: str | None = None
    held: bool = False
    early: bool = False


class Note(Struct, frozen=True):
    """Code and sentence: why a job is paused, was requeued, or how it ended."""

    code: str
    text: str
    remedy: str = ""
    numbers: dict[str, int | float | str | None] = {}


class Place(Struct, frozen=True):
    """GPUs of one node for one worker."""

    node: str
    gpus: tuple[str, ...]


class JobRecord(Struct, frozen=True, omit_defaults=True):
    """Job and its state.

    Attributes:
        spec: Its requested resources, with its current workers and priority.
        attempt: Number of the newest attempt, 0 before the first.
        queued_since: When it last began to wait.
        started: Start of the first attempt. ``ended``: when it reached a final state.
        exit_code: That of the last attempt. ``measured``: its measured use, once it has ended.
        parameters: Parameters of its notebook, cells or function.
        promised: GPUs that other jobs are leaving for it; kept until it starts or gives up (R20).
        retried: The failures after which it was retried, oldest first.
        remark: Remark by its users.
        awaits: The jobs that it waits for, or waited for. ``freed``: when it joined the queue after
            them; None when it waits for none, or still waits.
        late_since: Since when its deadline cannot be met; None while it can.
    """

    id: str
    name: str
    project: str
    user: str
    state: JobState
    submitted: float
    queued_since: float
    spec: JobSpec = JobSpec()
    key: str | None = None
    attempt: int = 0
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    stop_request: StopIntent | None = field(default=None, name="wish")
    note: Note | None = None
    promised: tuple[Place, ...] = ()
    progress: JobProgress | None = None
    measured: JobMeasurements | None = None
    retried: tuple[RetryRecord, ...] = ()
    parameters: dict[str, ParameterValue] = {}
    remark: str = ""
    awaits: tuple[Awaited, ...] = ()
    freed: float | None = None
    late_since: float | None = None

    @property
    def live(self) -> bool:
        """Return whether it has not ended."""
        return self.ended is None

    @property
    def gated(self) -> bool:
        """Return whether it waits for other jobs and is therefore not in the queue."""
        return bool(self.awaits) and self.freed is None and self.ended is None

    @property
    def in_line_since(self) -> float:
        """Return when it first joined the queue; its age counts from then on (R11)."""
        return self.submitted if self.freed is None else self.freed


class WorkerRecord(Struct, frozen=True, omit_defaults=True):
    """One process group of an attempt and the GPUs it holds until ``ended``.

    ``leaving``: the job continues without this worker, or it was lost before it joined the gang
    (R10); its end is no failure. ``failure``: details of a failure beyond the exit code.
    """

    index: int
    node: str
    gpus: tuple[str, ...]
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    ended_by: str | None = None
    text: str | None = None
    leaving: bool = False
    failure: FailureRecord | None = None


class AttemptRecord(Struct, frozen=True, omit_defaults=True):
    """One start of a job.

    Attributes:
        decided: When the pass decided it. ``started``: when all its workers ran.
        port: Rendezvous port of the gang.
        cpus: Cores of each worker, requested or default; None in records of releases that did
            not keep it. ``memory_gib``: memory in GiB.
    """

    job: str
    attempt: int
    decided: float
    workers: tuple[WorkerRecord, ...]
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    ended_by: str | None = None
    port: int = 29500
    cpus: float | None = None
    memory_gib: float | None = None

    @property
    def live_workers(self) -> tuple[WorkerRecord, ...]:
        """Return the workers that hold GPUs."""
        return tuple(w for w in self.workers if w.ended is None)


class PreemptionRecord(Struct, frozen=True, omit_defaults=True):
    """One pause of a job: for a claimant (R23), or on a user's request (``by``).

    Attributes:
        lost_gpu_s: Loss that was expected at the decision (R18).
        gpus: GPUs that it freed. ``needs``: GPUs of the job or benches that it was paused for.
        said: The user's reason. ``rule`` is empty then.
        ended: When its last worker had gone; from then on its measured cost is known.
        saved_at: Time of its last checkpoint; ``saved_step``, ``saved``: step and fraction of it.
        unsaved_gpu_s: GPU time since then, or since the attempt's start. ``restart_gpu_s``: GPU
            time from the decision to resume it until all its workers ran.
    """

    job: str
    attempt: int
    at: float
    claimant: str | None
    for_: str
    rule: str
    lost_gpu_s: float
    gpus: int
    resumed_at: float | None = None
    resumed_on: str | None = None
    needs: int = 0
    by: str | None = None
    said: str = ""
    ended: float | None = None
    saved_at: float | None = None
    saved_step: int | None = None
    saved: float | None = None
    unsaved_gpu_s: float | None = None
    restart_gpu_s: float | None = None

    @property
    def cost_gpu_s(self) -> float:
        """Return its cost so far in GPU seconds; before its end an estimate (R18)."""
        lost = self.unsaved_gpu_s
        return self.lost_gpu_s if lost is None else lost + (self.restart_gpu_s or 0.0)


class LeaseRecord(Struct, frozen=True):
    """Build GPUs held by one notebook server of one user (R1, R2)."""

    id: str
    user: str
    server: str
    spawn: str
    gpus: tuple[str, ...]
    since: float


class NodeWindowRecord(Struct, frozen=True, omit_defaults=True):
    """A maintenance window of a node."""

    begins: float
    ends: float
    reason: str
    by: str


class NodeRecord(Struct, frozen=True, omit_defaults=True):
    """Administrators' settings of a node.

    Attributes:
        drained: Since when no job may start there, None while jobs may. ``reason``, ``by``: of
            the drain.
        window: Its next maintenance window, or the present one.
    """

    name: str
    note: str = ""
    drained: float | None = None
    reason: str = ""
    by: str = ""
    window: NodeWindowRecord | None = None


# --------------------------------------------------------------------------- changes


class AddJob(Struct, frozen=True):
    """Addition of a job with its submission as JSON; its (user, key) must be new."""

    job: JobRecord
    submission: bytes
    objects: tuple[str, ...] = ()


class SaveJob(Struct, frozen=True):
    """New state of a job."""

    job: JobRecord


class SaveAsked(Struct, frozen=True):
    """Change of ``workers`` or ``priority`` by the service, to be written to the job's object
    too.
    """

    job: str
    fields: tuple[str, ...]


class SaveAttempt(Struct, frozen=True):
    """New state of an attempt; it holds the GPUs of workers that have not ended (R1)."""

    attempt: AttemptRecord


class SavePreemption(Struct, frozen=True):
    """New state of a preemption."""

    preemption: PreemptionRecord


class SaveLease(Struct, frozen=True):
    """Addition of a lease, which holds its GPUs (R1)."""

    lease: LeaseRecord


class DropLease(Struct, frozen=True):
    """Release of a lease."""

    id: str


class DropJob(Struct, frozen=True):
    """Removal of a job and of all its records by age."""

    id: str


class AddObject(Struct, frozen=True):
    """Upload of an object by a user, or a repeated use of it."""

    sha256: str
    user: str
    size: int
    at: float


class SaveUse(Struct, frozen=True):
    """All past use; use that is missing in it is removed."""

    use: tuple[UseRecord, ...]


class SaveCalibration(Struct, frozen=True):
    """Calibration of start estimates."""

    calibration: tuple[CalibrationRecord, ...]


class SaveNodes(Struct, frozen=True):
    """All node records; records that are missing in it are removed."""

    nodes: tuple[NodeRecord, ...]


Change = (
    AddJob
    | SaveJob
    | SaveAsked
    | SaveAttempt
    | SavePreemption
    | SaveLease
    | DropLease
    | DropJob
    | AddObject
    | SaveUse
    | SaveCalibration
    | SaveNodes
)


class Unreadable(Struct, frozen=True):
    """Record that exists but cannot be read.

    Attributes:
        kind: ``job``, ``lease``, or a kind that only history uses.
        id: ID of the job or lease.
        why: Reason in a few words. ``file``: the file that has it.
        gpus: GPUs that it still holds: they must not be assigned to another holder (R1).
    """

    kind: str
    id: str
    why: str
    file: str = ""
    gpus: tuple[str, ...] = ()


class StoredContents(Struct, frozen=True):
    """All records that a service holds in memory, in order of acceptance.

    Attributes:
        unreadable: Records that cannot be read; their jobs' other records are left out.
        hold: Why new jobs are blocked until an administrator decides, or None.
        numbers: Positions of ``jobs`` in the order of acceptance, where some are left out.
        next_number: Position of the next job, where positions are given.
        older: Whether ended jobs were left out, for ``HistoryStore.older``.
    """

    jobs: tuple[JobRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    preemptions: tuple[PreemptionRecord, ...] = ()
    leases: tuple[LeaseRecord, ...] = ()
    use: tuple[UseRecord, ...] = ()
    calibration: tuple[CalibrationRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    hold: str | None = None
    numbers: tuple[int, ...] = ()
    next_number: int = 0
    older: bool = False
