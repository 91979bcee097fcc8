"""Counts of jobs by state and of GPUs by holder, updated with each change.

They equal a count over the ledger's records, without a scan of all jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from benchpool_scheduler.core.lifecycle import machine, states
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.store.records import AttemptRecord, JobRecord

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class CountedJob:
    """The counted facts of one live job.

    Attributes:
        gpus: GPUs that its workers hold until they have ended. ``holds``: its state may hold GPUs.
        rendezvous: Node of its first worker with the rendezvous port there, None without workers.
    """

    project: str
    user: str
    state: JobState
    submitted: float
    gpus: tuple[str, ...] = ()
    holds: bool = False
    rendezvous: tuple[str, int] | None = None
    gated: bool = False
    awaits: tuple[str, ...] = ()


def counted(job: JobRecord, attempt: AttemptRecord | None) -> CountedJob:
    """Return the counted facts of a live job with its newest attempt."""
    live = () if attempt is None else attempt.live_workers
    rendezvous = None if attempt is None or not live else (attempt.workers[0].node, attempt.port)
    return CountedJob(
        project=job.project,
        user=job.user,
        state=job.state,
        submitted=job.submitted,
        gpus=tuple(gpu for worker in live for gpu in worker.gpus),
        holds=job.state in states.HOLDS_GPUS,
        rendezvous=rendezvous,
        gated=job.gated,
        awaits=tuple(it.job for it in job.awaits if it.outcome is None) if job.gated else (),
    )


@dataclass(slots=True)
class JobCounters:
    """Counts over the jobs that have not ended.

    Attributes:
        states: Number of jobs by state; ``by_state`` by project and state.
        held: GPUs held by jobs in a state that holds GPUs, by project; ``held_of`` by project
            and user.
        holders: The job that holds a GPU, by UUID. ``doubled``: GPUs with several (R1, a breach).
        gated: Jobs that wait for other jobs: they are not in the queue. ``gated_in``: number of
            queued ones among them, by project. ``dependents``: jobs that wait for a job.
        nominated: Jobs that are promised GPUs (R20). ``stopping``: jobs with a stop request.
        inconsistent: Jobs that hold GPUs in a state that holds none, or vice versa (a breach).
        ports: Rendezvous ports in use, by node.
    """

    states: Counter[JobState] = field(default_factory=Counter)
    by_state: Counter[tuple[str, JobState]] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    held_of: Counter[tuple[str, str]] = field(default_factory=Counter)
    holders: dict[str, str] = field(default_factory=dict)
    doubled: dict[str, set[str]] = field(default_factory=dict)
    gated: dict[str, None] = field(default_factory=dict)
    gated_in: Counter[str] = field(default_factory=Counter)
    dependents: dict[str, dict[str, None]] = field(default_factory=dict)
    nominated: dict[str, None] = field(default_factory=dict)
    stopping: dict[str, None] = field(default_factory=dict)
    inconsistent: dict[str, None] = field(default_factory=dict)
    ports: dict[str, Counter[int]] = field(default_factory=dict)
    _entries: dict[str, CountedJob] = field(default_factory=dict)

    def see(self, job: JobRecord, attempt: AttemptRecord | None) -> set[str]:
        """Count a job in its present state, with its newest attempt.

        Returns the GPUs whose holder, or the holder's counted facts, may have changed.
        """
        before = self._entries.pop(job.id, None)
        now = counted(job, attempt) if job.live else None
        _mark(self.gated, job.id, job.gated)
        _mark(self.nominated, job.id, job.live and bool(job.promised))
        _mark(self.stopping, job.id, job.live and job.stop_request is not None)
        if now is not None:
            inconsistent = bool(now.gpus) != now.holds or machine.is_over(now.state)
            _mark(self.inconsistent, job.id, inconsistent)
            self._entries[job.id] = now
        else:
            self.inconsistent.pop(job.id, None)
        if now == before:
            return set()
        moved: set[str] = set()
        self._depend(job.id, before, now)
        if before is not None:
            self._count(before, -1)
            self._let_go(job.id, before.gpus)
            moved.update(before.gpus)
        if now is not None:
            self._count(now, 1)
            self._take(job.id, now.gpus)
            moved.update(now.gpus)
        return moved

    def entry(self, job: str) -> CountedJob | None:
        """Return the counted facts of a job that has not ended."""
        return self._entries.get(job)

    def projects(self) -> Iterable[str]:
        """Return the projects that have jobs which have not ended."""
        return dict.fromkeys(project for project, _ in self.by_state)

    def in_queue(self, project: str | None = None) -> int:
        """Return how many jobs wait for GPUs, in one project or in all."""
        if project is None:
            return self.states[JobState.QUEUED] - self.gated_in.total()
        return self.by_state[project, JobState.QUEUED] - self.gated_in[project]

    def free_port(self, node: str, first: int, also: Iterable[int] = ()) -> int:
        """Return a rendezvous port that no gang with its first worker on the node uses.

        Args:
            also: Further ports that are taken.
        """
        taken = self.ports.get(node, Counter()).keys() | set(also)
        port = first
        while port in taken:
            port += 1
        return port

    # ------------------------------------------------------------------ inside

    def _count(self, entry: CountedJob, step: int) -> None:
        _add(self.states, entry.state, step)
        _add(self.by_state, (entry.project, entry.state), step)
        if entry.gated and entry.state is JobState.QUEUED:
            _add(self.gated_in, entry.project, step)
        if entry.holds and entry.gpus:
            _add(self.held, entry.project, step * len(entry.gpus))
            _add(self.held_of, (entry.project, entry.user), step * len(entry.gpus))
        if entry.rendezvous is not None:
            node, port = entry.rendezvous
            _add(self.ports.setdefault(node, Counter()), port, step)

    def _depend(self, job: str, before: CountedJob | None, now: CountedJob | None) -> None:
        for awaited in () if before is None else before.awaits:
            others = self.dependents[awaited]
            del others[job]
            if not others:
                del self.dependents[awaited]
        for awaited in () if now is None else now.awaits:
            self.dependents.setdefault(awaited, {})[job] = None

    def _let_go(self, job: str, gpus: Iterable[str]) -> None:
        for gpu in gpus:
            others = self.doubled.get(gpu)
            if others is not None:
                others.discard(job)
                if len(others) == 1:
                    del self.doubled[gpu]
                self.holders[gpu] = next(iter(others))
            elif self.holders.get(gpu) == job:
                del self.holders[gpu]

    def _take(self, job: str, gpus: Iterable[str]) -> None:
        for gpu in gpus:
            other = self.holders.setdefault(gpu, job)
            if other != job:
                self.doubled.setdefault(gpu, {other}).add(job)


def _mark(jobs: dict[str, None], job: str, holds: bool) -> None:
    if holds:
        jobs[job] = None
    else:
        jobs.pop(job, None)


def _add(counter: Counter[Key], key: Key, step: int) -> None:
    count = counter[key] + step
    if count:
        counter[key] = count
    else:
        del counter[key]
