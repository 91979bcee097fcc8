"""The facts that survive: jobs, attempts, preemptions, leases. Frozen; times are epoch seconds.

They are JSON beside the columns that SQL sees. New fields have a default, new meanings migrate.
"""

from __future__ import annotations

from msgspec import Struct

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
    """A change would give a GPU a second holder or repeat an id or key: an error of the caller."""


class StopIntent(Struct, frozen=True, omit_defaults=True):
    """Why a job that holds GPUs was told to stop; kept until its last worker has ended.

    Attributes:
        kind: What happens to the job when its workers are gone.
        at: When it was decided. ``grace_s``: time between notice and kill.
        by: The user who asked, None when the pool did.
        for_: Whom the room is for, as people read it. ``text``: the sentence for job and user.
        claimant: The job that gets the room (R20).
        held: An administrator asked, of somebody else's job: its owner cannot resume it.
        early: Its sweep asked: other trials do better.
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
    """Why a job is paused, was queued again or how it ended: a code and a sentence."""

    code: str
    text: str
    remedy: str = ""
    numbers: dict[str, int | float | str | None] = {}


class Place(Struct, frozen=True):
    """GPUs of one node for one worker."""

    node: str
    gpus: tuple[str, ...]


class JobRecord(Struct, frozen=True, omit_defaults=True):
    """A job and where it is in its life.

    Attributes:
        spec: What it asks for, with the workers and the priority that it has now.
        attempt: Number of the newest attempt, 0 before the first.
        queued_since: When it last began to wait.
        started: Start of the first attempt. ``ended``: when it reached a final state.
        exit_code: That of the attempt that ended the job. ``measured``: what it used until then.
        parameters: What its notebook, cells or function were given.
        promised: Places that others are leaving for it; kept until it has them or gives up (R20).
        retried: The failures after which it was tried again, oldest first.
        remark: What its people wrote about it.
        awaits: The jobs that it waits for, or waited for. ``freed``: when it joined the queue after
            them; None where it waits for none, or still does.
        late_since: Since when its deadline is not to be met any more; None while it may be.
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
    wish: StopIntent | None = None
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
        """Whether it has not ended."""
        return self.ended is None

    @property
    def gated(self) -> bool:
        """Whether it waits for other jobs, so that it is not in the queue."""
        return bool(self.awaits) and self.freed is None and self.ended is None

    @property
    def in_line_since(self) -> float:
        """When it first joined the queue: its age counts from then on (R11)."""
        return self.submitted if self.freed is None else self.freed


class WorkerRecord(Struct, frozen=True, omit_defaults=True):
    """One process group of an attempt and the GPUs it holds until ``ended``.

    ``leaving``: the job was told to go on without this worker, or it was lost before it joined the
    others (R10); its end is no failure. ``failure``: what is known of one beyond the exit code.
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
        cpus: Cores that each worker was started with, whoever named them; None in records of
            releases that did not keep it. ``memory_gib``: GiB of memory.
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
        """Workers that hold GPUs."""
        return tuple(w for w in self.workers if w.ended is None)


class PreemptionRecord(Struct, frozen=True, omit_defaults=True):
    """One pause of a job: for somebody else (R23), or because a person asked (``by``).

    Attributes:
        lost_gpu_s: What was expected to be lost when it was decided (R18).
        gpus: That it gave. ``needs``: those of the job or benches that it made room for.
        said: What the person gave as a reason. ``rule`` is empty then.
        ended: When its last worker had gone; from then on what it cost is known.
        saved_at: When it had last saved; ``saved_step``, ``saved``: at which step and fraction.
        unsaved_gpu_s: GPU time since then, or the attempt's start. ``restart_gpu_s``: that from the
            decision to resume it until all its workers ran.
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
        """GPU seconds that it cost as far as is known; before its end an estimate (R18)."""
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
    """What administrators said of a node.

    Attributes:
        drained: Since when nothing may start there, None while it may. ``reason``, ``by``: of that.
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
    """A new job with its submission as JSON; its (user, key) must be new."""

    job: JobRecord
    submission: bytes
    objects: tuple[str, ...] = ()


class SaveJob(Struct, frozen=True):
    """The job as it is now."""

    job: JobRecord


class SaveAsked(Struct, frozen=True):
    """``workers`` or ``priority`` of a job were changed here, not where others write them too."""

    job: str
    fields: tuple[str, ...]


class SaveAttempt(Struct, frozen=True):
    """The attempt as it is now; GPUs of workers that have not ended are held by it (R1)."""

    attempt: AttemptRecord


class SavePreemption(Struct, frozen=True):
    """The preemption as it is now."""

    preemption: PreemptionRecord


class SaveLease(Struct, frozen=True):
    """A new lease; its GPUs are held by it (R1)."""

    lease: LeaseRecord


class DropLease(Struct, frozen=True):
    """The lease is given back."""

    id: str


class DropJob(Struct, frozen=True):
    """The job and all that belongs to it is removed by age."""

    id: str


class AddObject(Struct, frozen=True):
    """A user has uploaded an object, or used it again."""

    sha256: str
    user: str
    size: int
    at: float


class SaveUse(Struct, frozen=True):
    """All past use as it is now; what is not in it is forgotten."""

    use: tuple[UseRecord, ...]


class SaveCalibration(Struct, frozen=True):
    """What is known of estimates of starts as it is now."""

    calibration: tuple[CalibrationRecord, ...]


class SaveNodes(Struct, frozen=True):
    """What was said of nodes as it is now; what is not in it is forgotten."""

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
    """A record that is there and cannot be read.

    Attributes:
        kind: ``job``, ``lease``, or another one that only a history lacks.
        id: Of the job or the lease.
        why: In a few words. ``file``: where it is.
        gpus: What it holds all the same: nobody else may be given these (R1).
    """

    kind: str
    id: str
    why: str
    file: str = ""
    gpus: tuple[str, ...] = ()


class StoredContents(Struct, frozen=True):
    """Everything that a service holds in memory, in the order in which it was accepted.

    Attributes:
        unreadable: Records that cannot be read; nothing else of their jobs is told.
        hold: Why nothing new may begin until an administrator decides, None where it may.
        numbers: Places of ``jobs`` in the order of acceptance, where some are left out.
        next_number: That of the next job, where numbers are told.
        older: Ended jobs were left out, for ``HistoryStore.older``.
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
