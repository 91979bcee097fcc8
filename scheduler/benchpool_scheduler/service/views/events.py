"""Feed of events for readers of server-sent events.

The feed keeps the newest entry of each job: a reader that was away gets each job that changed
meanwhile once, in its present state. Sequence numbers begin at the start time of the process in
microseconds, so they grow over restarts. A reader with a number from before gets ``reset``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["job", "pool", "deleted", "reset"]
MOST = 20_000
"""Maximum number of entries in the feed."""
TURN = 250
"""Maximum number of entries in a batch. Other tasks of the loop run between batches."""


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event: ``data`` is JSON, ``seq`` grows over restarts of the service.

    ``job``: data is a ``contract.Job``. ``pool``: the pool changed; data has ``text``, ``counts``,
    ``queue_length``, ``running`` and ``bench_line`` of ``contract.Status``. ``deleted``:
    ``contract.JobDeleted``. ``reset``: the reader must request everything again.
    """

    seq: int
    kind: Kind
    data: bytes


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """Record of a change; ``job`` and ``deleted`` have the job, its user and project."""

    seq: int
    kind: Kind
    job: str = ""
    user: str = ""
    project: str = ""


Render = Callable[[FeedEntry], bytes | None]
"""Returns the JSON of an entry for one reader, or None if the reader may not see it."""


class Feed:
    """The entries, newest last, and the signal for readers that wait for the next one.

    Args:
        first: The number before the first entry, larger than any number of an earlier process.

    Attributes:
        closed: No more events follow.
    """

    def __init__(self, first: int, most: int = MOST) -> None:
        self._seq = first
        self._forgotten = first
        self._most = most
        self._entries: OrderedDict[tuple[str, str], FeedEntry] = OrderedDict()
        self._news = asyncio.Event()
        self.closed = False
        self._end = asyncio.Event()
        self._readers = 0
        self._after: dict[int, list[FeedEntry]] = {}

    @property
    def followed(self) -> bool:
        """Whether there is a reader now."""
        return self._readers > 0

    @property
    def seq(self) -> int:
        """Number of the newest entry."""
        return self._seq

    def add(self, kind: Kind, job: str = "", user: str = "", project: str = "") -> None:
        """Add an entry for a change."""
        self._seq += 1
        self._after.clear()
        key = ("pool", "") if kind == "pool" else ("job", job)
        self._entries.pop(key, None)
        self._entries[key] = FeedEntry(self._seq, kind, job, user, project)
        while len(self._entries) > self._most:
            self._forgotten = self._entries.popitem(last=False)[1].seq
        self._news.set()

    def forget(self) -> None:
        """Drop all entries after many changes, so that readers request everything again."""
        self._seq += 1
        self._forgotten = self._seq
        self._entries.clear()
        self._after.clear()
        self._news.set()

    def close(self) -> None:
        """End all readers."""
        self.closed = True
        self._end.set()
        self._news.set()

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """Count a reader while the context is open."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    def news(self) -> asyncio.Event:
        """Return the event that is set at the next entry, at a nudge and at the end."""
        if self._news.is_set() and not self.closed:
            self._news = asyncio.Event()
        return self._news

    def nudge(self) -> None:
        """Wake the readers that wait for news."""
        self._news.set()

    async def rest(self, seconds: float) -> None:
        """Wait for this time or until the feed is closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._end.wait()

    def knows(self, after: int) -> bool:
        """Return whether all entries after this number are still stored."""
        return self._forgotten <= after <= self._seq

    def since(self, after: int) -> list[FeedEntry]:
        """Return the entries after a number, oldest first; cached until the next entry."""
        known = self._after.get(after)
        if known is None:
            found: list[FeedEntry] = []
            for entry in reversed(self._entries.values()):
                if entry.seq <= after:
                    break
                found.append(entry)
            known = self._after[after] = found[::-1]
        return known

    async def follow(self, after: int | None, render: Render) -> AsyncGenerator[FeedEvent, None]:
        """Yield the events that a reader may see until the feed is closed."""
        cursor = self._seq if after is None else after
        with self.read():
            while not self.closed:
                news = self.news()
                for entry in self.piece(cursor):
                    cursor = entry.seq
                    event = event_of(entry, render)
                    if event is not None:
                        yield event
                if self._seq == cursor and not self.closed:
                    await news.wait()

    def piece(self, after: int, until: int | None = None) -> Sequence[FeedEntry]:
        """Return the next entries after a number, at most ``TURN``.

        Args:
            until: Number of the last entry to return; None is the newest.
        """
        if not self.knows(after):
            return (FeedEntry(self._seq, "reset"),)
        entries = self.since(after)[:TURN]
        if until is None or not entries or entries[-1].seq <= until:
            return entries
        return [entry for entry in entries if entry.seq <= until]


def event_of(entry: FeedEntry, render: Render) -> FeedEvent | None:
    """Return the event of an entry, or None if the reader may not see it."""
    data = b"{}" if entry.kind == "reset" else render(entry)
    return None if data is None else FeedEvent(entry.seq, entry.kind, data)
