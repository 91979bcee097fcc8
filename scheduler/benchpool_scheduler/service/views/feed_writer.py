"""Subscriber that writes changes into the feed of events, at a limited rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator

from benchpool_scheduler.service.execution.passes import PassNews
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.views.events import Feed
from benchpool_scheduler.store.records import JobRecord

MANY = 2_000
"""Number of jobs changed at once above which readers must request everything again."""
SHIFTS_S = 2.0
"""Delay before changes of only a reason's numbers are published together, in seconds."""
POOL_S = 0.1
"""Period whose changes are combined into one event about the pool, in seconds."""


class FeedWriter:
    """Subscriber of the ledger, of passes and of estimates.

    Args:
        pool_event: Returns the public facts of the pool, as JSON.
    """

    def __init__(self, ledger: Ledger, feed: Feed, pool_event: Callable[[], bytes]) -> None:
        self._ledger = ledger
        self._feed = feed
        self._pool_event = pool_event
        self._last_pool = b""
        self._pool_soon: asyncio.TimerHandle | None = None
        self._shifted: set[str] = set()
        self._shifts_soon: asyncio.TimerHandle | None = None

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Publish changed jobs, and soon the pool."""
        self.publish(jobs)
        self._publish_later(dependents_of(self._ledger, jobs))
        self._publish_pool_soon()

    def job_dropped(self, job: JobRecord) -> None:
        """Publish the removal of a job."""
        self._feed.add("deleted", job.id, job.user, job.project)

    def pass_made(self, news: PassNews) -> None:
        """Publish new reasons now, and later the reasons where only numbers changed."""
        self.jobs_changed(news.jobs)
        self._publish_later(news.shifts)

    def _publish_later(self, jobs: Iterable[str]) -> None:
        """Publish jobs later and together, since only their numbers have changed."""
        self._shifted.update(jobs)
        if self._shifted and self._shifts_soon is None:
            loop = asyncio.get_running_loop()
            self._shifts_soon = loop.call_later(SHIFTS_S, self._publish_shifts)

    def publish(self, jobs: Collection[str]) -> None:
        """Publish changed jobs."""
        if len(jobs) > MANY:
            self._feed.forget()
            return
        for job in jobs:
            record = self._ledger.job(job)
            if record is not None:
                self._feed.add("job", record.id, record.user, record.project)

    def bench_asked(self, lease: str) -> None:
        """Publish a change of the pool, so that clients read their quotas again."""
        self._feed.add("pool")

    def close(self) -> None:
        """Cancel pending events and end all readers."""
        self._feed.close()
        for timer in (self._pool_soon, self._shifts_soon):
            if timer is not None:
                timer.cancel()

    # ------------------------------------------------------------------ inside

    def _publish_pool_soon(self) -> None:
        if self._pool_soon is None:
            self._pool_soon = asyncio.get_running_loop().call_later(POOL_S, self._publish_pool)

    def _publish_pool(self) -> None:
        self._pool_soon = None
        if not self._feed.followed:
            # A later reader may get one event too many; counting without readers would cost more.
            self._last_pool = b""
            self._feed.add("pool")
            return
        event = self._pool_event()
        if event != self._last_pool:
            self._last_pool = event
            self._feed.add("pool")

    def _publish_shifts(self) -> None:
        self._shifts_soon = None
        shifted, self._shifted = self._shifted, set()
        self.publish(shifted)


def dependents_of(ledger: Ledger, jobs: Iterable[str]) -> Iterator[str]:
    """Yield the jobs that wait for these jobs or their arrays: their reasons show progress."""
    for job in jobs if ledger.counters.dependents else ():
        yield from ledger.counters.dependents.get(job, ())
        array = ledger.arrays.array_of(job)
        yield from () if array is None else ledger.counters.dependents.get(array, ())
