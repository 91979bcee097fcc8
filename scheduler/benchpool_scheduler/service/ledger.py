"""What the service knows of jobs and leases: in memory for reading, in the store for ever.

Memory never knows more than the store: a ``Draft`` collects changes, ``commit`` writes them and
only then applies them in memory. Who changes something that exists holds ``turn`` from the look
at the facts to the commit, so that no two decisions rest on the same state; accepting a new job
needs no turn. Progress is the exception: it is only remembered, and saved with the next change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

import msgspec

from benchpool_scheduler.runtime import Notice, WorkerId
from benchpool_scheduler.store import Store
from benchpool_scheduler.store.records import (
    AddJob,
    AttemptRecord,
    Change,
    Contents,
    DropJob,
    DropLease,
    JobProgress,
    JobRecord,
    LeaseRecord,
    PreemptionRecord,
    SaveAttempt,
    SaveJob,
    SaveLease,
    SavePreemption,
)


class Ledger:
    """All jobs, attempts, preemptions and leases.

    Attributes:
        turn: Held by whoever changes something that exists.
        changed: Called after each commit with the ids of the jobs that changed.
        dropped: Called after each commit with the jobs that were removed by age.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.turn = asyncio.Lock()
        self.changed: Callable[[Collection[str]], None] = lambda ids: None
        self.dropped: Callable[[JobRecord], None] = lambda job: None
        self._jobs: dict[str, JobRecord] = {}
        self._live: dict[str, None] = {}
        self._attempts: dict[str, dict[int, AttemptRecord]] = {}
        self._preemptions: dict[str, dict[tuple[int, float], PreemptionRecord]] = {}
        self._leases: dict[str, LeaseRecord] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._live_of_user: dict[str, int] = {}

    async def open(self) -> None:
        """Open the store and read everything. Errors: Unavailable."""
        contents = await self.store.open()
        self._fill(contents)

    def _fill(self, contents: Contents) -> None:
        for job in contents.jobs:
            self._put_job(job)
        for attempt in contents.attempts:
            self._attempts.setdefault(attempt.job, {})[attempt.attempt] = attempt
        for preemption in contents.preemptions:
            self._put_preemption(preemption)
        for lease in contents.leases:
            self._leases[lease.id] = lease

    # ------------------------------------------------------------------ reading

    def job(self, job: str) -> JobRecord | None:
        """Return one job."""
        return self._jobs.get(job)

    def jobs(self) -> Iterator[JobRecord]:
        """Yield all jobs, newest first."""
        return reversed(self._jobs.values())

    def live(self) -> list[JobRecord]:
        """Return the jobs that have not ended, oldest first."""
        return [self._jobs[job] for job in self._live]

    def live_ids(self) -> tuple[str, ...]:
        """Return the ids of the jobs that have not ended, oldest first."""
        return tuple(self._live)

    def live_of(self, user: str) -> int:
        """Return how many jobs of a user have not ended."""
        return self._live_of_user.get(user, 0)

    def attempts(self, job: str) -> tuple[AttemptRecord, ...]:
        """Return the attempts of a job, oldest first."""
        return tuple(self._attempts.get(job, {}).values())

    def attempt(self, job: str, number: int) -> AttemptRecord | None:
        """Return one attempt."""
        return self._attempts.get(job, {}).get(number)

    def preemptions(self, job: str) -> tuple[PreemptionRecord, ...]:
        """Return the preemptions of a job, oldest first."""
        return tuple(self._preemptions.get(job, {}).values())

    def leases(self) -> tuple[LeaseRecord, ...]:
        """Return all leases."""
        return tuple(self._leases.values())

    def lease(self, lease: str) -> LeaseRecord | None:
        """Return one lease."""
        return self._leases.get(lease)

    def by_key(self, user: str, key: str) -> JobRecord | None:
        """Return the job that a user submitted with an idempotency key."""
        job = self._keys.get((user, key))
        return None if job is None else self._jobs[job]

    # ------------------------------------------------------------------ changing

    async def commit(self, *changes: Change) -> None:
        """Write the changes, then know them. Errors: Unavailable, and nothing has changed."""
        if not changes:
            return
        await self.store.commit(*changes)
        for change in changes:
            self._apply(change)
        self.changed(dict.fromkeys(job for job in map(_job_of, changes) if job in self._jobs))

    def remember(self, job: str, progress: JobProgress) -> None:
        """Know the progress of a live job; the next change of the job saves it."""
        record = self._jobs.get(job)
        if record is not None and record.live:
            self._jobs[job] = msgspec.structs.replace(record, progress=progress)
            self.changed([job])

    def _apply(self, change: Change) -> None:
        match change:
            case AddJob(job=job) | SaveJob(job=job):
                self._put_job(job)
            case SaveAttempt(attempt=attempt):
                self._attempts.setdefault(attempt.job, {})[attempt.attempt] = attempt
            case SavePreemption(preemption=preemption):
                self._put_preemption(preemption)
            case SaveLease(lease=lease):
                self._leases[lease.id] = lease
            case DropLease(id=lease_id):
                self._leases.pop(lease_id, None)
            case DropJob(id=job_id):
                self._drop_job(job_id)
            case _:
                pass

    def _put_job(self, job: JobRecord) -> None:
        before = self._jobs.get(job.id)
        was_live = before is not None and before.live
        self._jobs[job.id] = job
        if job.key is not None:
            self._keys[job.user, job.key] = job.id
        if job.live != was_live:
            step = 1 if job.live else -1
            self._live_of_user[job.user] = self._live_of_user.get(job.user, 0) + step
        if job.live:
            self._live[job.id] = None
        else:
            self._live.pop(job.id, None)

    def _put_preemption(self, it: PreemptionRecord) -> None:
        self._preemptions.setdefault(it.job, {})[it.attempt, it.at] = it

    def _drop_job(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        self._attempts.pop(job_id, None)
        self._preemptions.pop(job_id, None)
        if job is None:
            return
        if job.key is not None:
            self._keys.pop((job.user, job.key), None)
        self.dropped(job)


def _job_of(change: Change) -> str:
    match change:
        case AddJob(job=job) | SaveJob(job=job):
            return job.id
        case SaveAttempt(attempt=attempt):
            return attempt.job
        case SavePreemption(preemption=preemption):
            return preemption.job
        case _:
            return ""


@dataclass
class Draft:
    """Changes that will be committed together, and what the runtime is to do afterwards.

    Reads see the draft's own changes. ``launches`` are attempts whose workers are to be started,
    ``stops`` workers to be told to stop.
    """

    ledger: Ledger
    launches: list[WorkerId] = field(default_factory=list)
    stops: list[tuple[WorkerId, Notice]] = field(default_factory=list)
    _jobs: dict[str, JobRecord] = field(default_factory=dict)
    _attempts: dict[tuple[str, int], AttemptRecord] = field(default_factory=dict)
    _preemptions: dict[tuple[str, int, float], PreemptionRecord] = field(default_factory=dict)

    def job(self, job: str) -> JobRecord:
        """Return a job that exists as it is in the draft."""
        found = self._jobs.get(job) or self.ledger.job(job)
        if found is None:
            raise KeyError(job)
        return found

    def attempt(self, job: JobRecord) -> AttemptRecord | None:
        """Return the newest attempt of a job as it is in the draft."""
        key = (job.id, job.attempt)
        return self._attempts.get(key) or self.ledger.attempt(*key)

    def preemptions(self, job: str) -> tuple[PreemptionRecord, ...]:
        """Return the preemptions of a job as they are in the draft."""
        known = {(it.job, it.attempt, it.at): it for it in self.ledger.preemptions(job)}
        known.update({key: it for key, it in self._preemptions.items() if key[0] == job})
        return tuple(known.values())

    def save_job(self, job: JobRecord) -> None:
        """Set a job."""
        self._jobs[job.id] = job

    def save_attempt(self, attempt: AttemptRecord) -> None:
        """Set an attempt."""
        self._attempts[attempt.job, attempt.attempt] = attempt

    def save_preemption(self, it: PreemptionRecord) -> None:
        """Set a preemption."""
        self._preemptions[it.job, it.attempt, it.at] = it

    def changes(self) -> tuple[Change, ...]:
        """Return the changes, those that free GPUs before those that take them (R1)."""
        attempts = sorted(self._attempts.values(), key=lambda a: len(a.live_workers) > 0)
        return (
            *(SaveAttempt(attempt) for attempt in attempts),
            *(SavePreemption(it) for it in self._preemptions.values()),
            *(SaveJob(job) for job in self._jobs.values()),
        )
