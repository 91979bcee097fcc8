"""Changes to existing records, collected and then committed together."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchpool_scheduler.runtime import Notice, WorkerId
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import (
    AttemptRecord,
    Change,
    JobRecord,
    PreemptionRecord,
    SaveAsked,
    SaveAttempt,
    SaveJob,
    SavePreemption,
)

FIRST_PORT = 20_000


@dataclass
class UnitOfWork:
    """Changes that are committed together, and the runtime's actions afterwards.

    Reads see its own changes. ``launches`` are the workers to start, ``stops`` the workers to stop
    with their notices, ``stopped`` the workers among them whose stop is already queued.
    """

    ledger: Ledger
    launches: list[WorkerId] = field(default_factory=list)
    stops: list[tuple[WorkerId, Notice]] = field(default_factory=list)
    stopped: set[WorkerId] = field(default_factory=set)
    _jobs: dict[str, JobRecord] = field(default_factory=dict)
    _asked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _attempts: dict[tuple[str, int], AttemptRecord] = field(default_factory=dict)
    _preemptions: dict[str, dict[tuple[int, float], PreemptionRecord]] = field(default_factory=dict)
    _ports: dict[str, set[int]] = field(default_factory=dict)

    def job(self, job: str) -> JobRecord:
        """Return an existing job as it is in the unit of work. Errors: KeyError."""
        found = self._jobs.get(job) or self.ledger.job(job)
        if found is None:
            raise KeyError(job)
        return found

    def attempt(self, job: JobRecord) -> AttemptRecord | None:
        """Return the newest attempt of a job as it is in the unit of work."""
        key = (job.id, job.attempt)
        return self._attempts.get(key) or self.ledger.attempt(*key)

    def attempts(self, job: JobRecord) -> tuple[AttemptRecord, ...]:
        """Return the attempts of a job, oldest first, as they are in the unit of work."""
        newest = self.attempt(job)
        others = [it for it in self.ledger.attempts(job.id) if it.attempt != job.attempt]
        return tuple(others) if newest is None else (*others, newest)

    def pauses(self, job: str) -> tuple[PreemptionRecord, ...]:
        """Return the pauses of a job as they are in the unit of work."""
        known = {(it.attempt, it.at): it for it in self.ledger.pauses(job)}
        known.update(self._preemptions.get(job, {}))
        return tuple(known.values())

    def take_port(self, node: str) -> int:
        """Return a rendezvous port for a gang whose first worker is on this node."""
        taken = self._ports.setdefault(node, set())
        port = self.ledger.counters.free_port(node, FIRST_PORT, taken)
        taken.add(port)
        return port

    def save_job(self, job: JobRecord) -> None:
        """Set a job."""
        self._jobs[job.id] = job

    def save_asked(self, job: str, *fields: str) -> None:
        """Write these fields to the job's object too (``SaveAsked``)."""
        self._asked[job] = fields

    def save_attempt(self, attempt: AttemptRecord) -> None:
        """Set an attempt."""
        self._attempts[attempt.job, attempt.attempt] = attempt

    def save_preemption(self, it: PreemptionRecord) -> None:
        """Set a preemption."""
        self._preemptions.setdefault(it.job, {})[it.attempt, it.at] = it

    def changes(self) -> tuple[Change, ...]:
        """Return the changes, sorted so that GPUs are freed before they are taken (R1)."""
        attempts = sorted(self._attempts.values(), key=lambda a: len(a.live_workers) > 0)
        return (
            *(SaveAttempt(attempt) for attempt in attempts),
            *(
                SavePreemption(it)
                for of_job in self._preemptions.values()
                for it in of_job.values()
            ),
            *(SaveJob(job) for job in self._jobs.values()),
            *(SaveAsked(job, them) for job, them in self._asked.items() if job in self._jobs),
        )
