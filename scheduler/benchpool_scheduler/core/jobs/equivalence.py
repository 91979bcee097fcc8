"""Waiting jobs, kept between passes in classes of equal jobs.

All jobs of a class have the same project, user, priority and signature. In a pass they have the
same result: if the first job of a class cannot start, no job of it can. A running job that could
grow is a class of its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from benchpool_scheduler.core.jobs.endings import run_s
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId

Signature = tuple[object, ...]

_FOR_EVER = float("inf")


class EquivalenceClass:
    """Waiting jobs of one signature and user, by age.

    Attributes:
        tier: Negated priority, whether the job could grow, and whether it is long-running. The
            smallest goes first.
        ages: Ages of the jobs, oldest first.
        ids: IDs of the jobs, in the same order.
        workers: Workers of each job: 0, or the present workers of a job that could grow.
        shortest_s: Shortest known run time of all jobs. None before the first query.
    """

    __slots__ = ("ages", "ids", "jobs", "shortest_s", "signature", "tier", "user", "workers")

    def __init__(self, info: JobInfo, workers: int = 0) -> None:
        self.tier = (-info.spec.priority, workers > 0, info.long)
        self.user = info.user
        self.signature: Signature = (info.age, "grows") if workers else info.signature
        self.workers = workers
        self.ages: list[int] = []
        self.ids: list[JobId] = []
        self.jobs: dict[int, JobInfo] = {}
        self.shortest_s: float | None = None

    @classmethod
    def alone(cls, info: JobInfo, workers: int = 0) -> EquivalenceClass:
        """Return a class of one job."""
        found = cls(info, workers)
        found.put(info)
        return found

    def put(self, info: JobInfo) -> None:
        """Add a job in order of age."""
        if self.shortest_s is not None:
            self.shortest_s = min(self.shortest_s, _run_s(info))
        at = len(self.ages)
        if at and info.age < self.ages[-1]:
            at = bisect_left(self.ages, info.age)
        self.ages.insert(at, info.age)
        self.ids.insert(at, info.job.id)
        self.jobs[info.age] = info

    def drop(self, info: JobInfo) -> None:
        """Remove a job."""
        at = bisect_left(self.ages, info.age)
        del self.ages[at], self.ids[at], self.jobs[info.age]
        if self.shortest_s is not None and _run_s(info) <= self.shortest_s:
            self.shortest_s = None

    def at(self, position: int) -> JobInfo:
        """Return the job at a position. The oldest is at 0."""
        return self.jobs[self.ages[position]]

    def part(self, start: int, stop: int | None) -> EquivalenceClass:
        """Return the jobs between two positions as a class that exists only within a pass."""
        some = EquivalenceClass(self.at(start), self.workers)
        some.ages, some.ids = self.ages[start:stop], self.ids[start:stop]
        some.jobs, some.shortest_s = self.jobs, self.shortest_s
        return some

    def no_longer_than(self, run_s: float, start: int) -> int | None:
        """Return the first position from ``start`` of a job that runs at most ``run_s`` (R14)."""
        if run_s < self._shortest():
            return None
        return next(
            (at for at in range(start, len(self.ages)) if _run_s(self.at(at)) <= run_s), None
        )

    def _shortest(self) -> float:
        if self.shortest_s is None:
            self.shortest_s = min(map(_run_s, self.jobs.values()), default=_FOR_EVER)
        return self.shortest_s


class WaitingJobs:
    """All classes of waiting jobs, by project age."""

    def __init__(self) -> None:
        self.classes: dict[int, dict[tuple[str, Signature], EquivalenceClass]] = {}

    def put(self, info: JobInfo, workers: int = 0) -> None:
        """Add a waiting job. ``workers`` is the number of its present workers."""
        classes = self.classes.setdefault(info.branch.index, {})
        key = (info.user, (info.age, "grows") if workers else info.signature)
        equal_jobs = classes.get(key)
        if equal_jobs is None:
            equal_jobs = classes[key] = EquivalenceClass(info, workers)
        equal_jobs.put(info)

    def drop(self, info: JobInfo, workers: int = 0) -> None:
        """Remove a job that no longer waits."""
        classes = self.classes[info.branch.index]
        key = (info.user, (info.age, "grows") if workers else info.signature)
        equal_jobs = classes[key]
        equal_jobs.drop(info)
        if not equal_jobs.ages:
            del classes[key]
            if not classes:
                del self.classes[info.branch.index]

    def __iter__(self) -> Iterator[EquivalenceClass]:
        for classes in self.classes.values():
            yield from classes.values()


def _run_s(info: JobInfo) -> float:
    known = run_s(info.job)
    return _FOR_EVER if known is None else known
