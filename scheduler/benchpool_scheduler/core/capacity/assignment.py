"""What a pass has decided for a job so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId, Worker


@dataclass(frozen=True, slots=True)
class Assignment:
    """Workers given their GPUs, and the jobs that must be gone before they can start."""

    workers: tuple[Worker, ...]
    after: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class JobAssignment:
    """What the pass decided for one job: the workers it gets, in the order of its decisions."""

    info: JobInfo
    parts: tuple[Assignment, ...]

    def starts(self) -> Iterator[Assignment]:
        """Yield what starts now and what must wait; no job starts before its first workers."""
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
                after = dict.fromkeys(job for part in parts for job in part.after)
                yield Assignment(workers, tuple(after))

    @property
    def waits(self) -> Assignment | None:
        """Return the start of its first workers, when others must leave before it."""
        first = next(self.starts())
        return first if first.after else None
