"""What a pass has decided for a job so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchpool_scheduler.core.capacity.free_capacity import Taken
from benchpool_scheduler.core.jobs.job_info import Work


@dataclass(slots=True)
class Decided:
    """What the pass decided for one job: the workers it gets, in the order of its decisions."""

    work: Work
    parts: list[Taken] = field(default_factory=list)

    def starts(self) -> Iterator[Taken]:
        """Yield what starts now and what must wait; nothing starts before the first of it."""
        if len(self.parts) == 1:
            yield self.parts[0]
            return
        now = [part for part in self.parts if not part.after]
        later = [part for part in self.parts if part.after]
        if self.parts[0].after:
            now, later = [], self.parts
        for parts in (now, later):
            workers = tuple(worker for part in parts for worker in part.workers)
            if workers:
                after = dict.fromkeys(job for part in parts for job in part.after)
                yield Taken(workers, tuple(after))

    @property
    def waits(self) -> Taken | None:
        """Return the start of its first workers, when others must leave before it."""
        first = next(self.starts())
        return first if first.after else None
