"""The jobs that wait, kept between passes in lines of equal jobs.

All jobs of a line have one project, one user, one priority and one shape, so in a pass they fare
alike: when its first job cannot start, nobody in the line can. A running job that could grow is a
line of its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from benchpool_scheduler.core.jobs.endings import run_s
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.model import JobId

Shape = tuple[object, ...]

_FOR_EVER = float("inf")


class Line:
    """Waiting jobs of one shape and user, by age.

    Attributes:
        tier: Priority negated, whether this is a job that could grow, and whether it has run long;
            the smallest goes first.
        ages: By age, the oldest first; ``ids`` in the same order.
        workers: How many workers each has: none, or those of the job that could grow.
        shortest_s: The shortest known run of all; None until somebody asks.
    """

    __slots__ = ("ages", "ids", "shape", "shortest_s", "tier", "user", "workers", "works")

    def __init__(self, work: Work, workers: int = 0) -> None:
        self.tier = (-work.job.priority, workers > 0, work.long)
        self.user = work.user
        self.shape: Shape = (work.age, "grows") if workers else work.shape
        self.workers = workers
        self.ages: list[int] = []
        self.ids: list[JobId] = []
        self.works: dict[int, Work] = {}
        self.shortest_s: float | None = None

    def put(self, work: Work) -> None:
        """Add a job in its place."""
        if self.shortest_s is not None:
            self.shortest_s = min(self.shortest_s, _run_s(work))
        at = len(self.ages)
        if at and work.age < self.ages[-1]:
            at = bisect_left(self.ages, work.age)
        self.ages.insert(at, work.age)
        self.ids.insert(at, work.job.id)
        self.works[work.age] = work

    def drop(self, work: Work) -> None:
        """Take a job out."""
        at = bisect_left(self.ages, work.age)
        del self.ages[at], self.ids[at], self.works[work.age]
        if self.shortest_s is not None and _run_s(work) <= self.shortest_s:
            self.shortest_s = None

    def at(self, position: int) -> Work:
        """Return the job at a position, the oldest at 0."""
        return self.works[self.ages[position]]

    def part(self, start: int, stop: int | None) -> Line:
        """Return the jobs from one position up to another as a line that only a pass knows."""
        some = Line(self.at(start), self.workers)
        some.ages, some.ids = self.ages[start:stop], self.ids[start:stop]
        some.works, some.shortest_s = self.works, self.shortest_s
        return some

    def no_longer_than(self, run_s: float, start: int) -> int | None:
        """Return the first position from ``start`` on of a job that runs at most so long (R14)."""
        if run_s < self._shortest():
            return None
        return next(
            (at for at in range(start, len(self.ages)) if _run_s(self.at(at)) <= run_s), None
        )

    def _shortest(self) -> float:
        if self.shortest_s is None:
            self.shortest_s = min(map(_run_s, self.works.values()), default=_FOR_EVER)
        return self.shortest_s


class Waiting:
    """All lines, by project age."""

    def __init__(self) -> None:
        self.lines: dict[int, dict[tuple[str, Shape], Line]] = {}

    def put(self, work: Work, workers: int = 0) -> None:
        """Let a job wait; ``workers`` is how many it already has."""
        lines = self.lines.setdefault(work.branch.index, {})
        key = (work.user, (work.age, "grows") if workers else work.shape)
        line = lines.get(key)
        if line is None:
            line = lines[key] = Line(work, workers)
        line.put(work)

    def drop(self, work: Work, workers: int = 0) -> None:
        """The job does not wait any more."""
        lines = self.lines[work.branch.index]
        key = (work.user, (work.age, "grows") if workers else work.shape)
        line = lines[key]
        line.drop(work)
        if not line.ages:
            del lines[key]
            if not lines:
                del self.lines[work.branch.index]

    def __iter__(self) -> Iterator[Line]:
        """Yield every line."""
        for lines in self.lines.values():
            yield from lines.values()


def _run_s(work: Work) -> float:
    known = run_s(work.job)
    return _FOR_EVER if known is None else known
