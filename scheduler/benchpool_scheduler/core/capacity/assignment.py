"""Decisions of a pass for one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId, Worker


class Departure(NamedTuple):
    """One leaving worker of a job. Other workers of the job may leave for other reasons."""

    job: JobId
    worker: Worker


def departures(info: JobInfo, workers: Iterable[Worker]) -> Iterator[Departure]:
    """Yield the departure of each of these workers of a job."""
    return (Departure(info.job.id, worker) for worker in workers)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Workers with their GPUs, and the departures that they must wait for."""

    workers: tuple[Worker, ...]
    after: tuple[Departure, ...] = ()

    @property
    def jobs_after(self) -> tuple[JobId, ...]:
        """Return the jobs that the workers must wait for, each once."""
        return tuple(dict.fromkeys(departure.job for departure in self.after))

    def behind(self, more: Iterable[Departure]) -> Assignment:
        """Return the same workers, which must also wait for these departures."""
        after = dict.fromkeys(self.after)
        known = len(after)
        after.update(dict.fromkeys(more))
        return self if len(after) == known else Assignment(self.workers, tuple(after))


@dataclass(frozen=True, slots=True)
class JobAssignment:
    """Workers that a pass gives to one job, in the order of its decisions.

    The first decision for a job without workers holds at least its smallest gang (R10).
    """

    info: JobInfo
    parts: tuple[Assignment, ...]

    def __post_init__(self) -> None:
        info = self.info
        if info.queued and len(self.parts[0].workers) < info.least:
            raise AssertionError(
                f"job {info.job.id} would start with {len(self.parts[0].workers)} workers, "
                f"its minimum is {info.least}"
            )

    def starts(self) -> Iterator[Assignment]:
        """Yield the workers that start now, then the workers that must wait.

        If the first workers of a job must wait, all of its workers wait.
        """
        if len(self.parts) == 1:
            yield self.parts[0]
            return
        now = [part for part in self.parts if not part.after]
        later = [part for part in self.parts if part.after]
        if self.info.queued and self.parts[0].after:
            now, later = [], [*self.parts]
        for parts in (now, later):
            workers = tuple(worker for part in parts for worker in part.workers)
            if workers:
                yield Assignment(workers).behind(one for part in parts for one in part.after)

    @property
    def waits(self) -> Assignment | None:
        """Return the start of the job's first workers if it must wait for departures, else None."""
        first = next(self.starts())
        return first if first.after else None
