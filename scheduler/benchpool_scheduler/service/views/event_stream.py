"""Event streams of readers: the feed's entries as JSON, limited to what each caller may see."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.views.broadcast import Broadcast, Listener
from benchpool_scheduler.service.views.events import Feed, FeedEntry, FeedEvent, event_of
from benchpool_scheduler.service.views.job_views import GOOD_S, JobViews
from benchpool_scheduler.service.views.pool_views import PoolViews
from benchpool_scheduler.service.views.visibility import Visibility

NO_JOBS = "no jobs"
"""Audience that may see none of the jobs of a batch."""


_Which = tuple[str, int, int, int]
_Owned = dict[tuple[str, str] | None, list[FeedEntry]]
"""Entries of a batch by user and project of their jobs; None for entries without a job."""


_Rendered = tuple[float, FeedEvent | None]
"""Time of rendering, and the event that an audience gets for an entry."""


@dataclass(slots=True)
class _Made:
    """Renderings since a time, by audience, for reuse by all readers of an audience.

    Attributes:
        events: By the number of the entry, including those rendered in the previous period.
    """

    at: float
    pieces: dict[tuple[object, _Which], tuple[FeedEvent, ...]] = field(default_factory=dict)
    owned: dict[_Which, _Owned] = field(default_factory=dict)
    events: dict[object, dict[int, _Rendered]] = field(default_factory=dict)


class EventStream:
    """Event streams for readers."""

    def __init__(
        self, feed: Feed, ledger: Ledger, observed: SchedulerState, jobs: JobViews, pool: PoolViews
    ) -> None:
        self._feed = feed
        self._broadcast = Broadcast(feed, self._piece)
        self._ledger = ledger
        self._observed = observed
        self._jobs = jobs
        self._pool = pool
        self._rendered_pool: tuple[FeedEntry, bytes] | None = None
        self._made = _Made(0.0)

    def follow(self, caller: Caller, after: int | None = None) -> AsyncGenerator[FeedEvent, None]:
        """Yield the events after ``after`` that the caller may see; None means from now.

        Starts with an event ``reset`` if the events after ``after`` are no longer stored. The
        reader then requests everything again.
        """
        return self._feed.follow(after, partial(self._render, Visibility(caller, self._observed)))

    def to(
        self, listener: Listener, caller: Caller, after: int | None = None
    ) -> AbstractContextManager[None]:
        """Send the same events to a listener in batches, until it leaves."""
        return self._broadcast.to(listener, Visibility(caller, self._observed), after)

    def _piece(self, sight: Visibility, entries: Sequence[FeedEntry]) -> Sequence[FeedEvent]:
        """Return a reader's events for a batch, rendered once for each audience."""
        made, audience = self._made_now(), sight.audience
        # Entries only leave the feed or join its end, so these values identify a batch. A reset has
        # the number of the newest entry, and is alone in its batch.
        which = (entries[0].kind, entries[0].seq, entries[-1].seq, len(entries))
        known = made.pieces.get((audience, which))
        if known is not None:
            return known
        owned = made.owned.get(which)
        if owned is None:
            owned = made.owned[which] = self._by_owner(entries)
        seen = [owner for owner in owned if owner is not None and sight.covers(*owner)]
        # Most readers see only their own jobs: they share an audience.
        alike = audience if seen else NO_JOBS
        piece = made.pieces.get((alike, which))
        if piece is None:
            events = made.events.setdefault(alike, {})
            rendered = (self._event(sight, it, events) for it in _merged(owned, [*seen, None]))
            piece = made.pieces[alike, which] = tuple(it for it in rendered if it is not None)
        made.pieces[audience, which] = piece
        return piece

    def _made_now(self) -> _Made:
        now, made = self._observed.settings.clock.now(), self._made
        if not 0 <= now - made.at < GOOD_S:
            # Groups of readers take turns: most entries are also in a batch of the next group.
            good = {
                audience: {seq: it for seq, it in events.items() if 0 <= now - it[0] < GOOD_S}
                for audience, events in made.events.items()
            }
            self._made = _Made(now, events={who: it for who, it in good.items() if it})
        return self._made

    def _event(
        self, sight: Visibility, entry: FeedEntry, known: dict[int, _Rendered]
    ) -> FeedEvent | None:
        """Return the event of an entry, rendered once even if several batches contain it."""
        if entry.kind == "reset":
            return event_of(entry, partial(self._render, sight))
        now, found = self._observed.settings.clock.now(), known.get(entry.seq)
        if found is None or not 0 <= now - found[0] < GOOD_S:
            found = known[entry.seq] = now, event_of(entry, partial(self._render, sight))
        return found[1]

    def _by_owner(self, entries: Sequence[FeedEntry]) -> _Owned:
        owned: _Owned = {}
        for entry in entries:
            owned.setdefault(self._owner(entry), []).append(entry)
        return owned

    def _owner(self, entry: FeedEntry) -> tuple[str, str] | None:
        """Return user and project of an entry's job, or None for an entry without a job."""
        if not entry.job:
            return None
        record = self._ledger.job(entry.job)
        return (entry.user, entry.project) if record is None else (record.user, record.project)

    def _render(self, sight: Visibility, entry: FeedEntry) -> bytes | None:
        if entry.kind == "pool":
            return self._pool_event(entry)
        record = self._ledger.job(entry.job)
        if record is not None:
            visible = sight.covers(record.user, record.project)
            return self._jobs.encoded(record, sight.caller) if visible else None
        owned = sight.covers(entry.user, entry.project)
        return msgspec.json.encode(contract.JobDeleted(entry.job)) if owned else None

    def _pool_event(self, entry: FeedEntry) -> bytes:
        """Return the pool event for all readers. Each change of the pool adds a new entry."""
        if self._rendered_pool is None or self._rendered_pool[0] is not entry:
            self._rendered_pool = entry, self._pool.event()
        return self._rendered_pool[1]


def _merged(owned: _Owned, owners: Iterable[tuple[str, str] | None]) -> list[FeedEntry]:
    """Return the entries of these owners in their order."""
    found = [entry for owner in owners for entry in owned.get(owner, ())]
    return sorted(found, key=lambda entry: entry.seq)
