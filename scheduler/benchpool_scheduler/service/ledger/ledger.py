"""The service's records of jobs and leases: in memory for reading, durable in the store.

Memory is never ahead of the store: a ``UnitOfWork`` collects changes, ``commit`` writes them and
then applies them in memory. A task that changes existing records holds ``lock`` from reading the
facts to the commit, so that no two decisions depend on the same state. Accepting a new job needs no
lock. Progress is the exception: it is only kept in memory, and saved with the next change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.service.ledger.array_port import ArrayPort, NoArrays
from benchpool_scheduler.service.ledger.counters import JobCounters
from benchpool_scheduler.service.ledger.job_index import JobIndex
from benchpool_scheduler.service.ledger.runtime_estimator import RuntimeEstimator
from benchpool_scheduler.service.ledger.submission_bytes import SubmissionBytes
from benchpool_scheduler.service.ledger.submission_cache import SubmissionCache
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.store import HistoryStore, Store
from benchpool_scheduler.store.records import (
    AddJob,
    AttemptRecord,
    CalibrationRecord,
    Change,
    DropJob,
    DropLease,
    JobProgress,
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
    Unreadable,
    UseRecord,
)

PART = 200
"""Approximate number of changes that are applied before other tasks of the loop run."""


class Ledger:
    """All jobs, attempts, preemptions and leases.

    Attributes:
        lock: Held by each task that changes existing records.
        whole: Set once ended jobs of long ago are loaded too.
        job_index: The jobs. ``counters``: counts of the live jobs and the GPUs they hold.
        runtime_estimator: The run times of ended jobs, by kind of job.
        leased: The lease that holds a GPU, by UUID. ``saved_use``: past use as last saved (R7).
        saved_calibration: Calibration of start estimates as last saved (R22).
        saved_nodes: Administrators' settings of nodes.
        unreadable: Damaged records. ``lost``: why no job may start, or None.
        jobs_changed: Publishes the IDs of the changed jobs after each commit.
        job_dropped: Publishes the last record of each removed job.
        lease_taken: Publishes each new lease; ``lease_returned`` each released one.
        arrays: State of the arrays that jobs wait for.
        before_return: Called before the record of leases is removed.
        gpus_moved: Publishes GPUs whose holder may have changed.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = asyncio.Lock()
        self.jobs_changed: Topic[Collection[str]] = Topic()
        self.job_dropped: Topic[JobRecord] = Topic()
        self.lease_taken: Topic[LeaseRecord] = Topic()
        self.lease_returned: Topic[LeaseRecord] = Topic()
        self.gpus_moved: Topic[Collection[str]] = Topic()
        self.before_return: Callable[[Sequence[LeaseRecord]], Awaitable[None]] | None = None
        self.arrays: ArrayPort = NoArrays()
        self.job_index = JobIndex()
        self.whole = asyncio.Event()
        self.counters = JobCounters()
        self.runtime_estimator = RuntimeEstimator()
        self.leased: dict[str, LeaseRecord] = {}
        self.saved_use: tuple[UseRecord, ...] = ()
        self.saved_calibration: tuple[CalibrationRecord, ...] = ()
        self.saved_nodes: tuple[NodeRecord, ...] = ()
        self.unreadable: tuple[Unreadable, ...] = ()
        self.lost: str | None = None
        self.submission_cache = SubmissionCache()
        self.submission_bytes = SubmissionBytes()
        self._attempts: dict[str, dict[int, AttemptRecord]] = {}
        self._preemptions: dict[str, dict[tuple[int, float], PreemptionRecord]] = {}
        self._leases: dict[str, LeaseRecord] = {}
        self._keys: dict[tuple[str, str], str] = {}

    async def open(self) -> None:
        """Open the store and read its recent records. Errors: Unavailable."""
        contents = await self.store.open()
        self._fill(contents)
        self.gpus_moved.publish({*self.leased, *self.counters.holders})

    def _fill(self, contents: StoredContents) -> None:
        self.unreadable, self.lost = contents.unreadable, contents.hold
        self.saved_use, self.saved_calibration = contents.use, contents.calibration
        self.saved_nodes = contents.nodes
        for attempt in contents.attempts:
            self._attempts.setdefault(attempt.job, {})[attempt.attempt] = attempt
        for preemption in contents.preemptions:
            self._put_preemption(preemption)
        for lease in contents.leases:
            self._put_lease(lease)
        self.job_index.next_number(contents.next_number)
        numbers = contents.numbers or range(len(contents.jobs))
        for number, job in zip(numbers, contents.jobs, strict=True):
            self._put_job(job, number)
            self.counters.see(job, self.attempt(job.id, job.attempt))
            if job.live:
                stored = self.store.submission(job.id) or b""
                self.submission_bytes.put(job.id, job.user, len(stored))
        self.runtime_estimator.fill(contents.jobs, self._attempts)
        if not contents.older:
            self.whole.set()

    async def read_older(self) -> None:
        """Read the ended jobs that ``open`` left out, and set ``whole``. Errors: Unavailable."""
        if self.whole.is_set() or not isinstance(self.store, HistoryStore):
            return
        contents, known = await self.store.older(), self.job_index.listed()
        index = await asyncio.to_thread(_merged, known, contents)
        if self.whole.is_set():
            return  # loaded meanwhile by another task
        self.job_index.take(index, known)
        self.unreadable += contents.unreadable
        for attempt in contents.attempts:
            self._attempts.setdefault(attempt.job, {})[attempt.attempt] = attempt
        for preemption in contents.preemptions:
            self._put_preemption(preemption)
        for job in contents.jobs:
            if job.key is not None:
                self._keys[job.user, job.key] = job.id
        self.whole.set()

    # ------------------------------------------------------------------ reading

    def job(self, job: str) -> JobRecord | None:
        """Return one job."""
        return self.job_index.jobs.get(job)

    def jobs(self) -> Iterator[JobRecord]:
        """Yield all jobs, newest first."""
        return reversed(self.job_index.jobs.values())

    def live(self) -> list[JobRecord]:
        """Return the jobs that have not ended, oldest first."""
        # Copied at once: another thread may read while jobs are added.
        return [self.job_index.jobs[job] for job in list(self.job_index.live)]

    def live_of(self, user: str) -> int:
        """Return how many jobs of a user have not ended."""
        return self.job_index.live_of(user)

    def attempts(self, job: str) -> tuple[AttemptRecord, ...]:
        """Return the attempts of a job, oldest first."""
        return tuple(self._attempts.get(job, {}).values())

    def attempt(self, job: str, number: int) -> AttemptRecord | None:
        """Return one attempt."""
        return self._attempts.get(job, {}).get(number)

    def pauses(self, job: str) -> tuple[PreemptionRecord, ...]:
        """Return the pauses of a job, oldest first."""
        return tuple(self._preemptions.get(job, {}).values())

    def preemptions(self, job: str) -> tuple[PreemptionRecord, ...]:
        """Return the preemptions of a job, without pauses by users, oldest first."""
        return tuple(it for it in self.pauses(job) if it.by is None)

    def pauses_ended_since(self, since: float) -> Iterator[PreemptionRecord]:
        """Yield the pauses that ended at that time or later, epoch seconds."""
        for pauses in self._preemptions.values():
            yield from (it for it in pauses.values() if (it.ended or 0.0) >= since)

    def preemptions_since(self, since: float) -> Iterator[PreemptionRecord]:
        """Yield the preemptions that began at that time or later, epoch seconds."""
        for pauses in self._preemptions.values():
            yield from (it for it in pauses.values() if it.by is None and it.at >= since)

    def leases(self) -> tuple[LeaseRecord, ...]:
        """Return all leases."""
        return tuple(self._leases.values())

    def lease(self, lease: str) -> LeaseRecord | None:
        """Return one lease."""
        return self._leases.get(lease)

    def submission(self, job: str) -> JobSubmission:
        """Return the submission of a job. Errors: those of msgspec, if it cannot be read."""
        known = self.submission_cache.get(job)
        if known is not None:
            return known
        stored = self.store.submission(job) or b""
        return msgspec.json.decode(stored, type=JobSubmission)

    def by_key(self, user: str, key: str) -> JobRecord | None:
        """Return the job that a user submitted with an idempotency key."""
        job = self._keys.get((user, key))
        return None if job is None else self.job_index.jobs[job]

    # ------------------------------------------------------------------ changing

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Write the changes, then apply them in memory. Errors: Unavailable, without any change.

        ``as_written`` receives each job before its change is applied here (``Store.commit``).

        Many changes are applied in parts, each job as a whole, and other tasks run in between. A
        task that needs all of them or none holds ``lock``.
        """
        if not changes:
            return
        if self.before_return is not None:
            going = (self._leases.get(it.id) for it in changes if isinstance(it, DropLease))
            if leases := [lease for lease in going if lease is not None]:
                await self.before_return(leases)
        await self.store.commit(*changes, as_written=as_written)
        for number, part in enumerate(_parts(changes)):
            if number:
                await asyncio.sleep(0)
            self._learn(part)

    def know_lease(self, lease: LeaseRecord) -> None:
        """Replace a lease whose user was renamed. The store keeps the name of its start."""
        self._put_lease(lease)
        self.gpus_moved.publish(lease.gpus)

    def remember(self, job: str, progress: JobProgress) -> None:
        """Set the progress of a live job. The next change of the job saves it."""
        record = self.job(job)
        if record is not None and record.live:
            self.job_index.put(msgspec.structs.replace(record, progress=progress))
            self.jobs_changed.publish([job])

    def _learn(self, part: Sequence[Change]) -> None:
        for change in part:
            self._apply(change)
        known = [job for job in dict.fromkeys(map(_job_of, part)) if self.job(job) is not None]
        moved: set[str] = set()
        for job_id in known:
            job = self.job_index.jobs[job_id]
            moved |= self.counters.see(job, self.attempt(job_id, job.attempt))
        self.runtime_estimator.see((self.job_index.jobs[it], self.attempts(it)) for it in known)
        if moved:
            self.gpus_moved.publish(moved)
        if known:
            self.jobs_changed.publish(known)

    def _apply(self, change: Change) -> None:
        match change:
            case AddJob(job=job, submission=body):
                self.submission_bytes.put(job.id, job.user, len(body))
                self._put_job(job)
            case SaveJob(job=job):
                self._put_job(job)
            case SaveAttempt(attempt=attempt):
                self._attempts.setdefault(attempt.job, {})[attempt.attempt] = attempt
            case SavePreemption(preemption=preemption):
                self._put_preemption(preemption)
            case SaveLease(lease=lease):
                self._put_lease(lease)
                self.gpus_moved.publish(lease.gpus)
                self.lease_taken.publish(lease)
            case DropLease(id=lease_id):
                self._drop_lease(lease_id)
            case DropJob(id=job_id):
                self._drop_job(job_id)
            case SaveUse(use=use):
                self.saved_use = use
            case SaveCalibration(calibration=calibration):
                self.saved_calibration = calibration
            case SaveNodes(nodes=nodes):
                self.saved_nodes = nodes
            case _:
                pass

    def _put_job(self, job: JobRecord, number: int | None = None) -> None:
        before = self.job(job.id)
        # Keep progress that the job reported while this change was being written.
        if before is not None and _newer(before.progress, job.progress):
            job = msgspec.structs.replace(job, progress=before.progress)
        self.job_index.put(job, number)
        if not job.live:  # submissions of ended jobs are read from the store
            self.submission_cache.drop(job.id)
            self.submission_bytes.drop(job.id, job.user)
        if job.key is not None:
            self._keys[job.user, job.key] = job.id

    def _put_preemption(self, it: PreemptionRecord) -> None:
        self._preemptions.setdefault(it.job, {})[it.attempt, it.at] = it

    def _put_lease(self, lease: LeaseRecord) -> None:
        self._leases[lease.id] = lease
        self.leased.update(dict.fromkeys(lease.gpus, lease))

    def _drop_lease(self, lease_id: str) -> None:
        lease = self._leases.pop(lease_id, None)
        if lease is None:
            return
        for gpu in lease.gpus:
            del self.leased[gpu]
        self.gpus_moved.publish(lease.gpus)
        self.lease_returned.publish(lease)

    def _drop_job(self, job_id: str) -> None:
        job = self.job_index.drop(job_id)
        self._attempts.pop(job_id, None)
        self._preemptions.pop(job_id, None)
        if job is None:
            return
        self.runtime_estimator.forget(job_id)
        self.submission_cache.drop(job_id)
        self.submission_bytes.drop(job_id, job.user)
        if job.key is not None:
            self._keys.pop((job.user, job.key), None)
        self.job_dropped.publish(job)


def _merged(known: Iterable[tuple[int, JobRecord]], contents: StoredContents) -> JobIndex:
    """Return all jobs in the order of their acceptance."""
    index = JobIndex()
    older = zip(contents.numbers, contents.jobs, strict=True)
    for number, job in sorted([*known, *older], key=lambda entry: entry[0]):
        index.put(job, number)
    return index


def _newer(known: JobProgress | None, saved: JobProgress | None) -> bool:
    return known is not None and known is not saved and (saved is None or saved.at <= known.at)


def _parts(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Yield the changes in parts of about ``PART``, those of one job together."""
    if len(changes) <= PART:
        yield changes
        return
    of_job: dict[str, list[Change]] = {}
    for change in changes:
        of_job.setdefault(_job_of(change), []).append(change)
    part: list[Change] = []
    for more in of_job.values():
        part += more
        if len(part) >= PART:
            yield part
            part = []
    yield part


def _job_of(change: Change) -> str:
    match change:
        case AddJob(job=job) | SaveJob(job=job):
            return job.id
        case SaveAttempt(attempt=attempt):
            return attempt.job
        case SaveAsked(job=id_):
            return id_
        case SavePreemption(preemption=preemption):
            return preemption.job
        case _:
            return ""
