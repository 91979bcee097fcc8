"""All jobs in the order of their acceptance, indexed by user, project, state and ID prefix."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.store.records import JobRecord

PREFIX = 4
"""Minimum number of leading characters of an ID by which a job is found."""


class JobIndex:
    """The known jobs, live and ended.

    Attributes:
        jobs: Every job by ID, oldest first. ``numbers``: its position in the order of acceptance.
        live: IDs of jobs that have not ended, oldest first.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.numbers: dict[str, int] = {}
        self.live: dict[str, None] = {}
        self._next = 0
        self._of_user: dict[str, dict[str, None]] = {}
        self._of_project: dict[str, dict[str, None]] = {}
        self._of_state: dict[JobState, list[int]] = {}
        self._ids: dict[int, str] = {}
        self._by_prefix: dict[str, dict[str, None]] = {}
        self._live_of_user: dict[str, int] = {}

    def put(self, job: JobRecord, number: int | None = None) -> None:
        """Add or update a job. A new job is the youngest, or has this ``number``.

        Jobs with numbers must be added in their order.
        """
        before = self.jobs.get(job.id)
        self.jobs[job.id] = job
        if before is None:
            number = self._next if number is None else number
            self.numbers[job.id] = number
            self._ids[number] = job.id
            self.next_number(number + 1)
            self._of_user.setdefault(job.user, {})[job.id] = None
            self._of_project.setdefault(job.project, {})[job.id] = None
            self._by_prefix.setdefault(job.id[:PREFIX], {})[job.id] = None
        elif before.project != job.project:
            _remove(self._of_project, before.project, job.id)
            self._of_project.setdefault(job.project, {})[job.id] = None
        if before is None or before.state is not job.state:
            number = self.numbers[job.id]
            if before is not None:
                self._leave_state(before.state, number)
            if job.state is not JobState.QUEUED:
                insort(self._of_state.setdefault(job.state, []), number)
        was_live = before is not None and before.live
        if job.live != was_live:
            step = 1 if job.live else -1
            self._live_of_user[job.user] = self._live_of_user.get(job.user, 0) + step
            if job.live:
                self.live[job.id] = None
            else:
                del self.live[job.id]

    def next_number(self, least: int) -> None:
        """Set the minimum number for the next new job."""
        self._next = max(self._next, least)

    def listed(self) -> list[tuple[int, JobRecord]]:
        """Return every job with its number, oldest first."""
        return [(self.numbers[job.id], job) for job in self.jobs.values()]

    def take(self, other: JobIndex, known: Iterable[tuple[int, JobRecord]]) -> None:
        """Take over an index built from ``known`` and more jobs. Changes since then stay."""
        for number, job in self.listed():
            if other.jobs.get(job.id) is not job:
                other.put(job, number)
        for _, job in known:
            if job.id not in self.jobs:
                other.drop(job.id)
        other.next_number(self._next)
        vars(self).update(vars(other))

    def drop(self, job_id: str) -> JobRecord | None:
        """Forget a job. Return its last record, or None."""
        job = self.jobs.pop(job_id, None)
        if job is None:
            return None
        number = self.numbers.pop(job_id)
        del self._ids[number]
        self._leave_state(job.state, number)
        for index, key in (
            (self._of_user, job.user),
            (self._of_project, job.project),
            (self._by_prefix, job_id[:PREFIX]),
        ):
            _remove(index, key, job_id)
        if self.live.pop(job_id, job_id) is None:
            self._live_of_user[job.user] -= 1
        return job

    def _leave_state(self, state: JobState, number: int) -> None:
        if state is not JobState.QUEUED:
            numbers = self._of_state[state]
            del numbers[bisect_left(numbers, number)]

    # ------------------------------------------------------------------ finding

    def live_of(self, user: str) -> int:
        """Return how many jobs of a user have not ended."""
        return self._live_of_user.get(user, 0)

    def beginning(self, prefix: str) -> list[JobRecord]:
        """Return the jobs whose IDs begin with at least ``PREFIX`` characters, oldest first."""
        ids = self._by_prefix.get(prefix[:PREFIX], ())
        return [self.jobs[job] for job in ids if job.startswith(prefix)]

    def newest(
        self,
        *,
        users: Sequence[str] | None = None,
        projects: Sequence[str] | None = None,
        state: JobState | None = None,
    ) -> Iterator[JobRecord]:
        """Yield jobs, newest first.

        Args:
            users: Only jobs of these users or of ``projects``. With both None all jobs.
            state: Only jobs in this state.
        """
        jobs = self.jobs
        if users is None and projects is None:
            ids: Iterable[str] = self._all_in(state)
        else:
            own = [self._of_user.get(user, {}) for user in users or ()]
            theirs = [self._of_project.get(project, {}) for project in projects or ()]
            ids = self._merged([index for index in (*own, *theirs) if index])
        return (jobs[job] for job in ids if state is None or jobs[job].state is state)

    def _all_in(self, state: JobState | None) -> Iterable[str]:
        # Queued jobs have no list: they are many, leave it in the middle, and are among the newest.
        if state is None or state is JobState.QUEUED:
            return reversed(self.jobs)
        return (self._ids[number] for number in reversed(self._of_state.get(state, ())))

    def _merged(self, indices: Sequence[dict[str, None]]) -> Iterator[str]:
        if len(indices) == 1:
            yield from reversed(indices[0])
            return
        number = self.numbers.__getitem__
        newest = [reversed(index) for index in indices]
        last = None
        for job in heapq.merge(*newest, key=number, reverse=True):
            if job != last:
                yield job
            last = job


def _remove(index: dict[str, dict[str, None]], key: str, job: str) -> None:
    ids = index[key]
    ids.pop(job, None)
    if not ids:
        del index[key]
