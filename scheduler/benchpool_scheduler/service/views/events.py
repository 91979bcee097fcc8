"""What happened, for readers of server-sent events.

The feed keeps one entry per job, the newest: a reader that was away gets each job that changed
meanwhile once, as it is now. Sequence numbers begin at the start time of the process in
microseconds, so they grow over restarts; a reader with a number from before gets ``reset``.
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
"""Entries that are kept."""
TURN = 250
"""At most this many entries are a piece; other tasks of the loop run before the next one."""


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event: ``data`` is JSON, ``seq`` grows over restarts of the service.

    ``job``: data is a ``contract.Job``. ``pool``: the pool changed; data has ``text``, ``counts``,
    ``queue_length`` and ``running`` of ``contract.Status``. ``deleted``: ``contract.JobDeleted``.
    ``reset``: ask for everything again.
    """

    seq: int
    kind: Kind
    data: bytes


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """That something changed: for ``job`` and ``deleted`` which job, and whose it is."""

    seq: int
    kind: Kind
    job: str = ""
    user: str = ""
    project: str = ""


Render = Callable[[FeedEntry], bytes | None]
"""Returns the JSON of an entry for one reader, None when the reader may not see it."""


class Feed:
    """The entries, newest last, and whoever waits for the next one.

    Args:
        first: The number before the first entry; larger than any of an earlier process.

    Attributes:
        closed: Nothing more is told.
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
        """Tell whether anybody reads now."""
        return self._readers > 0

    @property
    def seq(self) -> int:
        """Number of the newest entry."""
        return self._seq

    def add(self, kind: Kind, job: str = "", user: str = "", project: str = "") -> None:
        """Note that something changed."""
        self._seq += 1
        self._after.clear()
        key = ("pool", "") if kind == "pool" else ("job", job)
        self._entries.pop(key, None)
        self._entries[key] = FeedEntry(self._seq, kind, job, user, project)
        while len(self._entries) > self._most:
            self._forgotten = self._entries.popitem(last=False)[1].seq
        self._news.set()

    def forget(self) -> None:
        """Note that so much changed that readers had better ask for everything again."""
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
        """Be somebody who reads, meanwhile."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    def news(self) -> asyncio.Event:
        """Return what is set when anything is added from now on, at a nudge and at the end."""
        if self._news.is_set() and not self.closed:
            self._news = asyncio.Event()
        return self._news

    def nudge(self) -> None:
        """Let those look who wait for news."""
        self._news.set()

    async def rest(self, seconds: float) -> None:
        """Wait so long, or until the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._end.wait()

    def knows(self, after: int) -> bool:
        """Tell whether nothing after this number was forgotten."""
        return self._forgotten <= after <= self._seq

    def since(self, after: int) -> list[FeedEntry]:
        """Return the entries after a number, oldest first; made once until there is another."""
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
        """Yield what a reader may see, for ever or until the feed is closed."""
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
        """Return what is to be told next after a number, at most ``TURN`` entries.

        Args:
            until: The last number of it; None is the newest.
        """
        if not self.knows(after):
            return (FeedEntry(self._seq, "reset"),)
        entries = self.since(after)[:TURN]
        if until is None or not entries or entries[-1].seq <= until:
            return entries
        return [entry for entry in entries if entry.seq <= until]


def event_of(entry: FeedEntry, render: Render) -> FeedEvent | None:
    """Return what a reader is told of an entry, None when it may not see it."""
    data = b"{}" if entry.kind == "reset" else render(entry)
    return None if data is None else FeedEvent(entry.seq, entry.kind, data)
