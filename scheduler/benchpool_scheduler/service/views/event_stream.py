"""What happens, for each reader: the feed's entries as JSON, as far as the caller may see them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.service.views.events import Feed, FeedEntry, FeedEvent
from benchpool_scheduler.service.views.job_views import JobViews
from benchpool_scheduler.service.views.pool_views import PoolViews


class EventStream:
    """Events for readers."""

    def __init__(
        self, feed: Feed, ledger: Ledger, observed: Observed, jobs: JobViews, pool: PoolViews
    ) -> None:
        self._feed = feed
        self._ledger = ledger
        self._observed = observed
        self._jobs = jobs
        self._pool = pool

    def follow(self, caller: Caller, after: int | None = None) -> AsyncGenerator[FeedEvent, None]:
        """Yield what the caller may see of what happens, from after ``after``; None from now.

        Starts with an event ``reset`` when the events after ``after`` are no longer known: the
        reader then asks for everything again.
        """
        return self._feed.follow(after, partial(self._render, caller))

    def _render(self, caller: Caller, entry: FeedEntry) -> bytes | None:
        if entry.kind == "pool":
            return self._pool.event()
        configuration = self._observed.now.configuration
        record = self._ledger.job(entry.job)
        if record is not None:
            visible = rights.may_use(caller, record, configuration)
            return msgspec.json.encode(self._jobs.job(record, caller)) if visible else None
        owned = rights.may_use_of(caller, entry.user, entry.project, configuration)
        return msgspec.json.encode(contract.JobDeleted(entry.job)) if owned else None
