"""The store's state in memory, and the checks of changes; nothing here blocks.

The API server stores whole objects and cannot check rules between objects: that a GPU has one
holder (R1), or that a key is used once. The cache checks them before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
from msgspec.structs import replace

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.resources.jobs import SpecRequests, TrainingJobSpec
from benchpool_scheduler.store.kubernetes.edits import EditRefused
from benchpool_scheduler.store.kubernetes.encoding import StoredJob, WaitReport
from benchpool_scheduler.store.records import (
    AddJob,
    AddObject,
    AttemptRecord,
    CalibrationRecord,
    Change,
    Conflict,
    DropJob,
    DropLease,
    JobRecord,
    LeaseRecord,
    NodeRecord,
    PreemptionRecord,
    SaveAsked,
    SaveAttempt,
    SaveCalibration,
    SaveJob,
    SaveLease,
    SaveNodes,
    SavePreemption,
    SaveUse,
    StoredContents,
    UseRecord,
)

Before = dict[str, StoredJob]
"""Jobs as they were before a commit, by ID."""


@dataclass(slots=True)
class CachedJob:
    """Job and the state of its object.

    Attributes:
        name: Name of the object. ``spec``: its spec as JSON.
        version: Last known resource version, empty before the object exists.
        revision: Increases with each change here; ``written``: the revision in the API server.
        suspend: Last reported value of ``spec.suspend``; ``requests``: likewise of its fields.
        asked: Fields of ``requests`` that were changed here and are not yet written to the object.
        gone: The object was deleted; nothing is written to it any more.
        edited: Its spec was edited and must be put back; ``refused``: the last such edit.
        wait_report: Last published report of its waiting.
        announced: State of the last posted event; None before the first.
    """

    stored: StoredJob
    name: str
    spec: bytes
    uid: str = ""
    version: str = ""
    generation: int = 0
    revision: int = 0
    written: int = 0
    suspend: bool = False
    requests: SpecRequests = field(default_factory=SpecRequests)
    asked: tuple[str, ...] = ()
    gone: bool = False
    edited: bool = False
    refused: EditRefused | None = None
    wait_report: WaitReport = field(default_factory=WaitReport)
    announced: JobState | None = None

    @property
    def spec_now(self) -> TrainingJobSpec:
        """Return its spec, decoded."""
        return msgspec.json.decode(self.spec, type=TrainingJobSpec)

    @property
    def behind(self) -> bool:
        """Return whether the API server has an older revision."""
        return self.written < self.revision and not self.gone


@dataclass
class WriteSet:
    """Objects that a commit must write.

    Attributes:
        jobs: IDs of jobs that the commit waits for; jobs that free GPUs come first.
        later: IDs of jobs that changed only in facts that the runtime reports again after a
        restart.
        added: New jobs whose object is not yet created, by ID.
    """

    jobs: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    added: dict[str, AddJob] = field(default_factory=dict)
    dropped: list[CachedJob] = field(default_factory=list)
    leases: list[LeaseRecord] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    use: tuple[UseRecord, ...] | None = None
    calibration: tuple[CalibrationRecord, ...] | None = None
    nodes: tuple[NodeRecord, ...] | None = None
    uploads: list[AddObject] = field(default_factory=list)


class StoreCache:
    """In-memory cache of all jobs and leases of the store.

    Attributes:
        jobs: By ID. ``leases``: by ID.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, CachedJob] = {}
        self.leases: dict[str, LeaseRecord] = {}
        self._gpus: dict[str, str] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._spawns: dict[tuple[str, str, str], str] = {}

    # ------------------------------------------------------------------ filling

    def add_job(self, cached: CachedJob) -> None:
        """Add a job as the API server has it."""
        job = cached.stored.job
        self.jobs[job.id] = cached
        if job.key is not None:
            self._keys[job.user, job.key] = job.id
        for gpu in _held_by(cached.stored.newest):
            self._gpus[gpu] = job.id

    def add_lease(self, lease: LeaseRecord) -> None:
        """Add a lease as the API server has it."""
        self.leases[lease.id] = lease
        self._spawns[lease.user, lease.server, lease.spawn] = lease.id
        self._gpus.update(dict.fromkeys(lease.gpus, lease.id))

    def contents(
        self,
        used: tuple[UseRecord, ...],
        calibration: tuple[CalibrationRecord, ...],
        nodes: tuple[NodeRecord, ...],
    ) -> StoredContents:
        """Return all cached records, with the given past use, calibration and node records."""
        images = [cached.stored for cached in self.jobs.values()]
        return StoredContents(
            jobs=tuple(stored.job for stored in images),
            attempts=tuple(it for stored in images for it in stored.attempts),
            preemptions=tuple(
                sorted((it for stored in images for it in stored.preemptions), key=lambda it: it.at)
            ),
            leases=tuple(self.leases.values()),
            use=used,
            calibration=calibration,
            nodes=nodes,
        )

    # ------------------------------------------------------------------ changing

    def check(self, changes: Sequence[Change]) -> None:
        """Check changes against the rules, without applying them. Errors: Conflict."""
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
                    gpus.update(dict.fromkeys(_held_by(self.jobs[id_].stored.newest)))
                case _:
                    pass

    def _check_new(self, job: JobRecord, seen: set[object]) -> None:
        if job.id in self.jobs or job.id in seen:
            raise Conflict(f"job {job.id} already exists")
        key = (job.user, job.key)
        if job.key is not None and (key in seen or (job.user, job.key) in self._keys):
            raise Conflict(f"{job.user} already has a job with the key {job.key!r}")
        seen |= {job.id, key}

    def _check_known(self, job: str, seen: set[object]) -> None:
        if job not in self.jobs and job not in seen:
            raise Conflict(f"job {job} does not exist")

    def _check_attempt(self, attempt: AttemptRecord, gpus: dict[str, str | None]) -> None:
        known = self.jobs.get(attempt.job)
        for gpu in _held_by(None if known is None else known.stored.newest):
            if gpus.get(gpu, attempt.job) == attempt.job:
                gpus[gpu] = None
        for gpu in _held_by(attempt):
            self._claim(gpu, attempt.job, gpus)

    def _check_lease(
        self, lease: LeaseRecord, gpus: dict[str, str | None], seen: set[object]
    ) -> None:
        spawn = (lease.user, lease.server, lease.spawn)
        if lease.id in self.leases or spawn in self._spawns or spawn in seen:
            raise Conflict(f"lease {lease.id} or another lease of this start already exists")
        seen.add(spawn)
        for gpu in lease.gpus:
            self._claim(gpu, lease.id, gpus)

    def _claim(self, gpu: str, holder: str, gpus: dict[str, str | None]) -> None:
        other = gpus[gpu] if gpu in gpus else self._gpus.get(gpu)
        if other is not None and other != holder:
            raise Conflict(f"GPU {gpu} is held by {other}; {holder} cannot hold it too")
        gpus[gpu] = holder

    def apply(self, changes: Sequence[Change]) -> WriteSet:
        """Apply checked changes and return the objects to write."""
        write_set = WriteSet()
        before: Before = {}
        for change in changes:
            match change:
                case AddJob(job=job):
                    self.add_job(CachedJob(StoredJob(job), name=job.id, spec=b"", revision=1))
                    write_set.added[job.id] = change
                case SaveJob(job=job):
                    self._change(before, job.id, partial(_with_job, job))
                case SaveAsked(job=id_, fields=fields):
                    cached = self.jobs[id_]
                    cached.asked = (*(it for it in cached.asked if it not in fields), *fields)
                case SaveAttempt(attempt=attempt):
                    self._save_attempt(before, attempt)
                case SavePreemption(preemption=it):
                    self._save_preemption(before, it)
                case SaveLease(lease=lease):
                    self.add_lease(lease)
                    write_set.leases.append(lease)
                case DropLease(id=id_):
                    self._drop_lease(id_, write_set)
                case DropJob(id=id_):
                    self._drop_job(id_, write_set)
                    before.pop(id_, None)
                case SaveUse(use=use):
                    write_set.use = use
                case SaveCalibration(calibration=calibration):
                    write_set.calibration = calibration
                case SaveNodes(nodes=nodes):
                    write_set.nodes = nodes
                case AddObject():
                    write_set.uploads.append(change)
        self._sort(before, write_set)
        return write_set

    def forget_added(self, job: str) -> None:
        """Remove a new job whose object the API server refused."""
        cached = self.jobs.pop(job, None)
        if cached is not None and cached.stored.job.key is not None:
            self._keys.pop((cached.stored.job.user, cached.stored.job.key), None)

    def _change(self, before: Before, job: str, to: Callable[[StoredJob], StoredJob]) -> None:
        cached = self.jobs[job]
        before.setdefault(job, cached.stored)
        cached.stored = to(cached.stored)
        cached.revision += 1

    def _save_attempt(self, before: Before, attempt: AttemptRecord) -> None:
        for gpu in _held_by(self.jobs[attempt.job].stored.newest):
            if self._gpus.get(gpu) == attempt.job:
                del self._gpus[gpu]

        def to(stored: StoredJob) -> StoredJob:
            kept = tuple(it for it in stored.attempts if it.attempt != attempt.attempt)
            attempts = tuple(sorted((*kept, attempt), key=lambda it: it.attempt))
            return replace(stored, attempts=attempts)

        self._change(before, attempt.job, to)
        for gpu in _held_by(attempt):
            self._gpus[gpu] = attempt.job

    def _save_preemption(self, before: Before, it: PreemptionRecord) -> None:
        def to(stored: StoredJob) -> StoredJob:
            kept = tuple(
                one for one in stored.preemptions if (one.attempt, one.at) != (it.attempt, it.at)
            )
            return replace(stored, preemptions=tuple(sorted((*kept, it), key=lambda one: one.at)))

        self._change(before, it.job, to)

    def _drop_lease(self, id_: str, write_set: WriteSet) -> None:
        lease = self.leases.pop(id_, None)
        if lease is None:
            return
        self._spawns.pop((lease.user, lease.server, lease.spawn), None)
        for gpu in lease.gpus:
            if self._gpus.get(gpu) == id_:
                del self._gpus[gpu]
        write_set.returned.append(id_)

    def _drop_job(self, id_: str, write_set: WriteSet) -> None:
        cached = self.jobs.pop(id_, None)
        if cached is None:
            return
        job = cached.stored.job
        if job.key is not None:
            self._keys.pop((job.user, job.key), None)
        for gpu in _held_by(cached.stored.newest):
            if self._gpus.get(gpu) == id_:
                del self._gpus[gpu]
        write_set.dropped.append(cached)

    def _sort(self, before: Before, write_set: WriteSet) -> None:
        freeing: list[str] = []
        taking: list[str] = []
        for job, was in before.items():
            cached = self.jobs[job]
            if job in write_set.added:
                continue
            if without_runtime_facts(was) == without_runtime_facts(cached.stored):
                write_set.later.append(job)
            elif _held_by(cached.stored.newest):
                taking.append(job)
            else:
                freeing.append(job)
        write_set.jobs = freeing + taking


def _with_job(job: JobRecord, stored: StoredJob) -> StoredJob:
    return replace(stored, job=job)


def _held_by(attempt: AttemptRecord | None) -> tuple[str, ...]:
    if attempt is None:
        return ()
    return tuple(gpu for worker in attempt.live_workers for gpu in worker.gpus)


def without_runtime_facts(stored: StoredJob) -> StoredJob:
    """Return a job without the facts that the runtime reports again after a restart.

    These are that its workers run, and since when. Two versions of a job that are equal without
    them need not be written before a commit returns.
    """
    job = stored.job
    state = JobState.STARTING if job.state is JobState.RUNNING else job.state
    job = replace(job, state=state, started=None, progress=None)
    attempts = stored.attempts
    if attempts:
        newest = attempts[-1]
        workers = tuple(
            replace(it, started=None) if it.ended is None else it for it in newest.workers
        )
        attempts = (*attempts[:-1], replace(newest, started=None, workers=workers))
    preemptions = tuple(
        replace(it, resumed_at=None, resumed_on=None) if it.resumed_at is not None else it
        for it in stored.preemptions
    )
    return StoredJob(job, attempts, preemptions)
