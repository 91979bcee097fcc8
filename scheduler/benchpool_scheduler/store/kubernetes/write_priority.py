"""Priorities and rates of deferred writes: each job is pending at one priority."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import islice

from benchpool_scheduler.store.kubernetes.cache import CachedJob

LATEST_S = 10.0
"""Maximum time that deferred writes wait for other writes, in seconds."""


@dataclass(frozen=True, slots=True)
class WritePriority:
    """Rate of deferred writes: a batch, then a pause.

    Attributes:
        at_once: Number of jobs in a batch.
        rest: Pause as a multiple of the batch's duration, so a busy API server has longer pauses.
    """

    at_once: int
    rest: float


SOON = WritePriority(8, 0.0)
"""Changes of jobs: as fast as the API server accepts them beside urgent writes."""
AT_LEISURE = WritePriority(1, 3.0)
"""Reports of waiting jobs: a quarter of the time of one sequential writer."""


@dataclass(slots=True)
class PendingWrites:
    """Jobs that are pending at one priority, in order."""

    jobs: dict[str, CachedJob] = field(default_factory=dict)
    some: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, most: int | None) -> list[CachedJob]:
        """Remove and return the first jobs, all for None."""
        taken = [self.jobs.pop(id_) for id_ in list(islice(self.jobs, most))]
        if not self.jobs:
            self.some.clear()
        return taken
