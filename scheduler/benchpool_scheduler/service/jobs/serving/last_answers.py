"""A replica that is paused gives its answers first: new requests have gone elsewhere by then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from benchpool_scheduler.runtime import Notice, WorkerId
from benchpool_scheduler.service.jobs.serving.service_book import ServiceBook
from benchpool_scheduler.service.jobs.serving.traffic import RequestCounts

SHARE = 2 / 3
"""Part of the grace that requests may take; the rest is left to the program for its own end."""


@dataclass(frozen=True, slots=True)
class LastAnswers:
    """Keeps a notice back while a replica has requests.

    Attributes:
        counts: Returns what counts requests now.
    """

    book: ServiceBook
    counts: Callable[[], RequestCounts]

    async def given(self, worker: WorkerId, notice: Notice) -> Notice:
        """Wait for what a replica has to answer; return the notice with what is left of its grace.

        One that is cancelled is told at once, as is what is no replica.
        """
        if notice.kind != "pause" or self.book.of_job(worker.job) is None:
            return notice
        clock = asyncio.get_running_loop().time
        began = clock()
        with suppress(TimeoutError):
            async with asyncio.timeout(notice.grace_s * SHARE):
                await self.counts().drained(worker.job)
        return replace(notice, grace_s=max(notice.grace_s - (clock() - began), 0.0))
