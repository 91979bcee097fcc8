"""The facts that survive: jobs, attempts, preemptions, leases. Frozen; times are epoch seconds.

They are written as JSON beside the few columns that SQL must see. A field may be added with a
default; a changed meaning needs a migration.
"""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import Intent, JobState


class Conflict(Exception):
    """A change would give a GPU a second holder or repeat an id or key: an error of the caller."""


class StopIntent(Struct, frozen=True, omit_defaults=True):
    """Why a job that holds GPUs was told to stop; kept until its last worker has ended.

    Attributes:
        kind: What happens to the job when its workers are gone.
        at: When it was decided.
        grace_s: Time between notice and kill.
        by: The user who asked, None when the pool did.
        for_: Whom the room is for, as people read it.
        text: The sentence for job and user.
        claimant: The job that gets the room (R20).
    """

    kind: Intent
    at: float
    grace_s: float = 30.0
    by: str | None = None
    for_: str = ""
    text: str = ""
    claimant: str | None = None


class Note(Struct, frozen=True):
    """Why a job is paused, was queued again or how it ended: a code and a sentence."""

    code: str
    text: str
    remedy: str = ""
    numbers: dict[str, int | float | str | None] = {}


class JobProgress(Struct, frozen=True):
    """What the job last said of itself; ``checkpoint_at`` is when it last saved."""

    at: float
    fraction: float | None = None
    text: str | None = None
    checkpoint_at: float | None = None


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
        exit_code: That of the attempt that ended the job.
        promised: Places that others are leaving for it; kept until it starts or gives up (R20).
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

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None


class WorkerRecord(Struct, frozen=True, omit_defaults=True):
    """One process group of an attempt and the GPUs it holds until ``ended``.

    ``leaving``: the job was told to go on without this worker, or it was lost before it joined the
    others (R10); its end is no failure.
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


class AttemptRecord(Struct, frozen=True, omit_defaults=True):
    """One start of a job.

    Attributes:
        decided: When the pass decided it. ``started``: when all its workers ran.
        port: Rendezvous port of the gang.
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

    @property
    def live_workers(self) -> tuple[WorkerRecord, ...]:
        """Workers that hold GPUs."""
        return tuple(w for w in self.workers if w.ended is None)


class PreemptionRecord(Struct, frozen=True, omit_defaults=True):
    """One pause of a job for somebody else (R23)."""

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


class LeaseRecord(Struct, frozen=True):
    """Build GPUs held by one notebook server of one user (R1, R2)."""

    id: str
    user: str
    server: str
    spawn: str
    gpus: tuple[str, ...]
    since: float


class UseRecord(Struct, frozen=True):
    """Decayed past use above quota of a project, or of one of its users (R7).

    Attributes:
        user: Empty for the project as a whole.
        gpu_s: GPU seconds as they counted ``at`` that instant.
    """

    project: str
    user: str
    gpu_s: float
    at: float


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
    """

    jobs: tuple[JobRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    preemptions: tuple[PreemptionRecord, ...] = ()
    leases: tuple[LeaseRecord, ...] = ()
    use: tuple[UseRecord, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    hold: str | None = None
