"""Delay of a replica's pause until its requests are answered; new requests go to other replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from benchpool_scheduler.runtime import Notice, WorkerId
from benchpool_scheduler.service.jobs.serving.service_book import ServiceBook
from benchpool_scheduler.service.jobs.serving.traffic import RequestCounts

SHARE = 2 / 3
"""Share of the grace period for open requests; the program gets the rest for its own shutdown."""


@dataclass(frozen=True, slots=True)
class LastAnswers:
    """Delay of pause notices while a replica has open requests.

    Attributes:
        counts: Returns the current request counts.
    """

    book: ServiceBook
    counts: Callable[[], RequestCounts]

    async def given(self, worker: WorkerId, notice: Notice) -> Notice:
        """Wait for a replica's open requests; return the notice with the remaining grace period.

        A cancelled replica and a worker of another job get their notice at once.
        """
        if notice.kind != "pause" or self.book.of_job(worker.job) is None:
            return notice
        clock = asyncio.get_running_loop().time
        began = clock()
        with suppress(TimeoutError):
            async with asyncio.timeout(notice.grace_s * SHARE):
                await self.counts().drained(worker.job)
        return replace(notice, grace_s=max(notice.grace_s - (clock() - began), 0.0))
