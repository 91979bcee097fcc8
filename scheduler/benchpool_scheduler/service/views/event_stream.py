"""What happens, for each reader: the feed's entries as JSON, as far as the caller may see them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.service.views.broadcast import Broadcast, Listener
from benchpool_scheduler.service.views.events import Feed, FeedEntry, FeedEvent, event_of
from benchpool_scheduler.service.views.job_views import GOOD_S, JobViews
from benchpool_scheduler.service.views.pool_views import PoolViews
from benchpool_scheduler.service.views.sight import Sight

NOBODY = "nobody's jobs"
"""The audience that may see none of the jobs that a piece is about."""


class EventStream:
    """Events for readers."""

    def __init__(
        self, feed: Feed, ledger: Ledger, observed: Observed, jobs: JobViews, pool: PoolViews
    ) -> None:
        self._feed = feed
        self._broadcast = Broadcast(feed, self._piece)
        self._ledger = ledger
        self._observed = observed
        self._jobs = jobs
        self._pool = pool
        self._told_pool: tuple[FeedEntry, bytes] | None = None
        self._made: dict[tuple[object, ...], tuple[FeedEvent, ...]] = {}
        self._owners: dict[tuple[object, ...], frozenset[tuple[str, str] | None]] = {}
        self._made_at = 0.0

    def follow(self, caller: Caller, after: int | None = None) -> AsyncGenerator[FeedEvent, None]:
        """Yield what the caller may see of what happens, from after ``after``; None from now.

        Starts with an event ``reset`` when the events after ``after`` are no longer known: the
        reader then asks for everything again.
        """
        return self._feed.follow(after, partial(self._render, Sight(caller, self._observed)))

    def to(
        self, listener: Listener, caller: Caller, after: int | None = None
    ) -> AbstractContextManager[None]:
        """Tell the same to a listener, all that there is at once, until it leaves."""
        return self._broadcast.to(listener, Sight(caller, self._observed), after)

    def _piece(self, sight: Sight, entries: Sequence[FeedEntry]) -> Sequence[FeedEvent]:
        """Return what a reader is told, made once for all who are told it and may see the same."""
        now = self._observed.settings.clock.now()
        if not 0 <= now - self._made_at < GOOD_S:
            self._made, self._owners, self._made_at = {}, {}, now
        # Entries only leave the feed and join its end, so these say which ones they are.
        # A reset has the number of the newest, and stands alone.
        which = (entries[0].kind, entries[0].seq, entries[-1].seq, len(entries))
        owners = self._owners.get(which)
        if owners is None:
            owners = self._owners[which] = frozenset(map(self._owner, entries))
        # Most readers see nobody's jobs but their own: they are told the same, without a look at
        # each entry.
        sees = any(sight.covers(*owner) for owner in owners if owner is not None)
        key = (sight.audience if sees else NOBODY, *which)
        known = self._made.get(key)
        if known is None:
            told = entries if sees else [it for it in entries if self._owner(it) is None]
            events = (event_of(entry, partial(self._render, sight)) for entry in told)
            known = self._made[key] = tuple(event for event in events if event is not None)
        return known

    def _owner(self, entry: FeedEntry) -> tuple[str, str] | None:
        """Return user and project of the job that an entry is about; None where it is of none."""
        if not entry.job:
            return None
        record = self._ledger.job(entry.job)
        return (entry.user, entry.project) if record is None else (record.user, record.project)

    def _render(self, sight: Sight, entry: FeedEntry) -> bytes | None:
        if entry.kind == "pool":
            return self._pool_event(entry)
        record = self._ledger.job(entry.job)
        if record is not None:
            visible = sight.covers(record.user, record.project)
            return self._jobs.encoded(record, sight.caller) if visible else None
        owned = sight.covers(entry.user, entry.project)
        return msgspec.json.encode(contract.JobDeleted(entry.job)) if owned else None

    def _pool_event(self, entry: FeedEntry) -> bytes:
        """Return what all readers are told of the pool; when it changes there is a new entry."""
        if self._told_pool is None or self._told_pool[0] is not entry:
            self._told_pool = entry, self._pool.event()
        return self._told_pool[1]
