"""What the store holds in memory, and the rules that a change must keep; nothing here waits.

The API server keeps each object whole, and knows nothing of what holds between objects: that a GPU
has one holder (R1), that a key is used once. That is checked here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
from msgspec.structs import replace

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.resources.jobs import TrainingJobSpec
from benchpool_scheduler.store.kubernetes.edits import EditRefused
from benchpool_scheduler.store.kubernetes.translation import Image, Told
from benchpool_scheduler.store.records import (
    AddJob,
    AddObject,
    AttemptRecord,
    Change,
    Conflict,
    Contents,
    DropJob,
    DropLease,
    JobRecord,
    LeaseRecord,
    PreemptionRecord,
    SaveAsked,
    SaveAttempt,
    SaveJob,
    SaveLease,
    SavePreemption,
    SaveUse,
    UseRecord,
)

Before = dict[str, Image]
"""Jobs as they were before a commit."""


@dataclass(slots=True)
class Held:
    """A job and the object it is.

    Attributes:
        name: Of the object. ``spec``: its spec as JSON.
        version: The resource version as we know it, empty before the object is there.
        revision: Grows with each change here; ``written``: the one that the API server has.
        suspend: The value of ``spec.suspend`` that was told last; ``workers`` and ``priority``
            likewise.
        asked: Those of ``workers`` and ``priority`` that the object is still to say as they are.
        gone: The object was deleted; there is nothing to write to any more.
        edited: The object says otherwise now; ``refused`` is the last edit that was put back.
    """

    image: Image
    name: str
    spec: bytes
    uid: str = ""
    version: str = ""
    generation: int = 0
    revision: int = 0
    written: int = 0
    suspend: bool = False
    workers: int = 0
    priority: int = 0
    asked: tuple[str, ...] = ()
    gone: bool = False
    edited: bool = False
    refused: EditRefused | None = None
    told: Told = field(default_factory=Told)

    @property
    def spec_now(self) -> TrainingJobSpec:
        """Its spec, decoded anew."""
        return msgspec.json.decode(self.spec, type=TrainingJobSpec)

    @property
    def behind(self) -> bool:
        """Whether the API server has an older revision."""
        return self.written < self.revision and not self.gone


@dataclass
class Touched:
    """What a commit is about to write.

    Attributes:
        jobs: Those that must be written before the commit is done; those that give GPUs back come
            first. ``later``: those of which only such things changed as are told again after a
            restart.
        added: Jobs whose object is still to be made, by id, with submission and objects.
    """

    jobs: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    added: dict[str, AddJob] = field(default_factory=dict)
    dropped: list[Held] = field(default_factory=list)
    leases: list[LeaseRecord] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    use: tuple[UseRecord, ...] | None = None
    uploads: list[AddObject] = field(default_factory=list)


class Holding:
    """All jobs and leases of the store.

    Attributes:
        jobs: By id. ``leases``: by id.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, Held] = {}
        self.leases: dict[str, LeaseRecord] = {}
        self._gpus: dict[str, str] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._spawns: dict[tuple[str, str, str], str] = {}

    # ------------------------------------------------------------------ filling

    def put(self, held: Held) -> None:
        """Take a job as the API server has it."""
        job = held.image.job
        self.jobs[job.id] = held
        if job.key is not None:
            self._keys[job.user, job.key] = job.id
        for gpu in _held_by(held.image.newest):
            self._gpus[gpu] = job.id

    def put_lease(self, lease: LeaseRecord) -> None:
        """Take a lease as the API server has it."""
        self.leases[lease.id] = lease
        self._spawns[lease.user, lease.server, lease.spawn] = lease.id
        self._gpus.update(dict.fromkeys(lease.gpus, lease.id))

    def contents(self, used: tuple[UseRecord, ...]) -> Contents:
        """Return all that is held, and past use."""
        images = [held.image for held in self.jobs.values()]
        return Contents(
            jobs=tuple(image.job for image in images),
            attempts=tuple(it for image in images for it in image.attempts),
            preemptions=tuple(
                sorted((it for image in images for it in image.preemptions), key=lambda it: it.at)
            ),
            leases=tuple(self.leases.values()),
            use=used,
        )

    # ------------------------------------------------------------------ changing

    def check(self, changes: Sequence[Change]) -> None:
        """Refuse changes that break a rule; nothing is changed. Errors: Conflict."""
        gpus: dict[str, str | None] = {}
        seen: set[object] = set()
        for change in changes:
            match change:
                case AddJob(job=job):
                    self._check_new(job, seen)
                case SaveJob(job=job):
                    self._check_known(job.id, seen)
                case SaveAsked(job=id_):
                    self._check_known(id_, seen)
                case SaveAttempt(attempt=attempt):
                    self._check_known(attempt.job, seen)
                    self._check_attempt(attempt, gpus)
                case SavePreemption(preemption=it):
                    self._check_known(it.job, seen)
                case SaveLease(lease=lease):
                    self._check_lease(lease, gpus, seen)
                case DropLease(id=id_) if id_ in self.leases:
                    gpus.update(dict.fromkeys(self.leases[id_].gpus))
                case DropJob(id=id_) if id_ in self.jobs:
                    gpus.update(dict.fromkeys(_held_by(self.jobs[id_].image.newest)))
                case _:
                    pass

    def _check_new(self, job: JobRecord, seen: set[object]) -> None:
        if job.id in self.jobs or job.id in seen:
            raise Conflict(f"there is a job {job.id} already")
        key = (job.user, job.key)
        if job.key is not None and (key in seen or (job.user, job.key) in self._keys):
            raise Conflict(f"{job.user} has a job with the key {job.key!r} already")
        seen |= {job.id, key}

    def _check_known(self, job: str, seen: set[object]) -> None:
        if job not in self.jobs and job not in seen:
            raise Conflict(f"there is no job {job}")

    def _check_attempt(self, attempt: AttemptRecord, gpus: dict[str, str | None]) -> None:
        known = self.jobs.get(attempt.job)
        for gpu in _held_by(None if known is None else known.image.newest):
            if gpus.get(gpu, attempt.job) == attempt.job:
                gpus[gpu] = None
        for gpu in _held_by(attempt):
            self._claim(gpu, attempt.job, gpus)

    def _check_lease(
        self, lease: LeaseRecord, gpus: dict[str, str | None], seen: set[object]
    ) -> None:
        spawn = (lease.user, lease.server, lease.spawn)
        if lease.id in self.leases or spawn in self._spawns or spawn in seen:
            raise Conflict(f"there is a lease {lease.id}, or one of this start, already")
        seen.add(spawn)
        for gpu in lease.gpus:
            self._claim(gpu, lease.id, gpus)

    def _claim(self, gpu: str, holder: str, gpus: dict[str, str | None]) -> None:
        other = gpus[gpu] if gpu in gpus else self._gpus.get(gpu)
        if other is not None and other != holder:
            raise Conflict(f"GPU {gpu} is held by {other}; {holder} cannot hold it too")
        gpus[gpu] = holder

    def apply(self, changes: Sequence[Change]) -> Touched:
        """Make checked changes and say what is to be written."""
        touched = Touched()
        before: Before = {}
        for change in changes:
            match change:
                case AddJob(job=job):
                    self.put(Held(Image(job), name=job.id, spec=b"", revision=1))
                    touched.added[job.id] = change
                case SaveJob(job=job):
                    self._change(before, job.id, partial(_with_job, job))
                case SaveAsked(job=id_, fields=fields):
                    held = self.jobs[id_]
                    held.asked = (*(it for it in held.asked if it not in fields), *fields)
                case SaveAttempt(attempt=attempt):
                    self._save_attempt(before, attempt)
                case SavePreemption(preemption=it):
                    self._save_preemption(before, it)
                case SaveLease(lease=lease):
                    self.put_lease(lease)
                    touched.leases.append(lease)
                case DropLease(id=id_):
                    self._drop_lease(id_, touched)
                case DropJob(id=id_):
                    self._drop_job(id_, touched)
                    before.pop(id_, None)
                case SaveUse(use=use):
                    touched.use = use
                case AddObject():
                    touched.uploads.append(change)
        self._sort(before, touched)
        return touched

    def forget_added(self, job: str) -> None:
        """Take back a job whose object the API server refused."""
        held = self.jobs.pop(job, None)
        if held is not None and held.image.job.key is not None:
            self._keys.pop((held.image.job.user, held.image.job.key), None)

    def _change(self, before: Before, job: str, to: Callable[[Image], Image]) -> None:
        held = self.jobs[job]
        before.setdefault(job, held.image)
        held.image = to(held.image)
        held.revision += 1

    def _save_attempt(self, before: Before, attempt: AttemptRecord) -> None:
        for gpu in _held_by(self.jobs[attempt.job].image.newest):
            if self._gpus.get(gpu) == attempt.job:
                del self._gpus[gpu]

        def to(image: Image) -> Image:
            kept = tuple(it for it in image.attempts if it.attempt != attempt.attempt)
            attempts = tuple(sorted((*kept, attempt), key=lambda it: it.attempt))
            return replace(image, attempts=attempts)

        self._change(before, attempt.job, to)
        for gpu in _held_by(attempt):
            self._gpus[gpu] = attempt.job

    def _save_preemption(self, before: Before, it: PreemptionRecord) -> None:
        def to(image: Image) -> Image:
            kept = tuple(
                one for one in image.preemptions if (one.attempt, one.at) != (it.attempt, it.at)
            )
            return replace(image, preemptions=tuple(sorted((*kept, it), key=lambda one: one.at)))

        self._change(before, it.job, to)

    def _drop_lease(self, id_: str, touched: Touched) -> None:
        lease = self.leases.pop(id_, None)
        if lease is None:
            return
        self._spawns.pop((lease.user, lease.server, lease.spawn), None)
        for gpu in lease.gpus:
            if self._gpus.get(gpu) == id_:
                del self._gpus[gpu]
        touched.returned.append(id_)

    def _drop_job(self, id_: str, touched: Touched) -> None:
        held = self.jobs.pop(id_, None)
        if held is None:
            return
        job = held.image.job
        if job.key is not None:
            self._keys.pop((job.user, job.key), None)
        for gpu in _held_by(held.image.newest):
            if self._gpus.get(gpu) == id_:
                del self._gpus[gpu]
        touched.dropped.append(held)

    def _sort(self, before: Before, touched: Touched) -> None:
        freeing: list[str] = []
        taking: list[str] = []
        for job, was in before.items():
            held = self.jobs[job]
            if job in touched.added:
                continue
            if told_again(was) == told_again(held.image):
                touched.later.append(job)
            elif _held_by(held.image.newest):
                taking.append(job)
            else:
                freeing.append(job)
        touched.jobs = freeing + taking


def _with_job(job: JobRecord, image: Image) -> Image:
    return replace(image, job=job)


def _held_by(attempt: AttemptRecord | None) -> tuple[str, ...]:
    if attempt is None:
        return ()
    return tuple(gpu for worker in attempt.live_workers for gpu in worker.gpus)


def told_again(image: Image) -> Image:
    """Return a job without what the runtime tells again after a restart: that its workers run.

    Two images that are alike in the rest need not be told apart by what is on disk.
    """
    job = image.job
    state = JobState.STARTING if job.state is JobState.RUNNING else job.state
    job = replace(job, state=state, started=None, progress=None)
    attempts = image.attempts
    if attempts:
        newest = attempts[-1]
        workers = tuple(
            replace(it, started=None) if it.ended is None else it for it in newest.workers
        )
        attempts = (*attempts[:-1], replace(newest, started=None, workers=workers))
    preemptions = tuple(
        replace(it, resumed_at=None, resumed_on=None) if it.resumed_at is not None else it
        for it in image.preemptions
    )
    return Image(job, attempts, preemptions)
