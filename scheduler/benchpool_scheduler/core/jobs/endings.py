"""When running jobs end, as far as that is known, the next end first (R14).

A time limit bounds a run, counted from the job's last start. Where there is none, what is learned
of its run time counts, less what earlier attempts have done.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import Activity, JobFacts


def run_s(job: JobFacts) -> float | None:
    """Return how long a job runs after a start, in seconds; None where nothing is known.

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
    """Return the instant at which a running job ends, on the clock of its ``as_of_s``."""
    run = run_s(job)
    return None if run is None else job.as_of_s - job.ran_s + run


class Endings:
    """The known ends of running jobs.

    Attributes:
        waiting: How many jobs without workers would have a known end.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._ends: list[tuple[float, int]] = []
        self._jobs: dict[int, JobInfo] = {}

    def __bool__(self) -> bool:
        return bool(self._ends) or self.waiting > 0

    def put(self, info: JobInfo) -> None:
        """The job is new in the cluster state."""
        self._count(info, 1)

    def drop(self, info: JobInfo) -> None:
        """Take back ``put``."""
        self._count(info, -1)

    def after(self, now_s: float) -> Iterator[tuple[float, JobInfo]]:
        """Yield running jobs that are to end after an instant, with their ends, soonest first.

        One that should have ended already has no known end any more.
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
