"""What may be written later, and how fast: each job is pending at one priority."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import islice

from benchpool_scheduler.store.kubernetes.cache import CachedJob

LATEST_S = 10.0
"""What may be written later waits for other writes no longer than this."""


@dataclass(frozen=True, slots=True)
class WritePriority:
    """How what may be written later is written: some together, then a rest.

    Attributes:
        at_once: Number of jobs that are written together.
        rest: In times of what the writes took, so that a busy API server has more of it.
    """

    at_once: int
    rest: float


SOON = WritePriority(8, 0.0)
"""What becomes of jobs: as fast as the API server takes it when it has nothing else of ours."""
AT_LEISURE = WritePriority(1, 3.0)
"""What is said of waiting jobs: a quarter of the time of one who writes one after the other."""


@dataclass(slots=True)
class PendingWrites:
    """The jobs that are pending at one priority, in order."""

    jobs: dict[str, CachedJob] = field(default_factory=dict)
    some: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, most: int | None) -> list[CachedJob]:
        """Return the first ones, which then wait no more."""
        taken = [self.jobs.pop(id_) for id_ in list(islice(self.jobs, most))]
        if not self.jobs:
            self.some.clear()
        return taken
