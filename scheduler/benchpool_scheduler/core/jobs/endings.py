"""Known ends of running jobs, soonest first (R14).

A time limit bounds a run from the job's last start. Without one, the learned run time counts, less
the part done by earlier attempts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import Activity, JobFacts


def run_s(job: JobFacts) -> float | None:
    """Return how long a job runs after a start, in seconds, or None if unknown.

    >>> from benchpool_scheduler.core.model import JobId, ProjectName
    >>> run_s(JobFacts(JobId("j"), ProjectName("p"), expected_run_s=90.0, done_s=30.0))
    60.0
    """
    if job.spec.time_limit_s is not None:
        return job.spec.time_limit_s
    if job.expected_run_s is None or job.expected_run_s <= job.done_s:
        return None
    return job.expected_run_s - job.done_s


def end_s(job: JobFacts) -> float | None:
    """Return when a running job ends, on the clock of its ``as_of_s``, or None if unknown."""
    run = run_s(job)
    return None if run is None else job.as_of_s - job.ran_s + run


class Endings:
    """Known ends of running jobs.

    Attributes:
        waiting: Number of jobs without workers that would have a known end.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._ends: list[tuple[float, int]] = []
        self._jobs: dict[int, JobInfo] = {}

    def __bool__(self) -> bool:
        return bool(self._ends) or self.waiting > 0

    def put(self, info: JobInfo) -> None:
        """Add a job of the cluster state."""
        self._count(info, 1)

    def drop(self, info: JobInfo) -> None:
        """Undo ``put``."""
        self._count(info, -1)

    def after(self, now_s: float) -> Iterator[tuple[float, JobInfo]]:
        """Yield the ends after an instant, with their running jobs, soonest first.

        A job whose expected end has passed has no known end.
        """
        for at in range(bisect_left(self._ends, (now_s, -1)), len(self._ends)):
            end, age = self._ends[at]
            if end > now_s:
                yield end, self._jobs[age]

    def _count(self, info: JobInfo, step: int) -> None:
        job = info.job
        if job.spec.time_limit_s is None and job.expected_run_s is None:
            return
        end = end_s(job)
        if end is None or job.activity is Activity.TERMINATING:
            return
        if info.queued:
            self.waiting += step
        elif step > 0:
            insort(self._ends, (end, info.age))
            self._jobs[info.age] = info
        else:
            del self._ends[bisect_left(self._ends, (end, info.age))]
            del self._jobs[info.age]
