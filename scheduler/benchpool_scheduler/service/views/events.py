"""What happened, for readers of server-sent events.

The feed keeps one entry per job, the newest: a reader that was away gets each job that changed
meanwhile once, as it is now. Sequence numbers begin at the start time of the process in
microseconds, so they grow over restarts; a reader with a number from before gets ``reset``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["job", "pool", "deleted", "reset"]
MOST = 20_000
"""Entries that are kept."""
TURN = 50
"""At most this many entries are rendered for a reader before other tasks of the loop run."""


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
    """

    def __init__(self, first: int, most: int = MOST) -> None:
        self._seq = first
        self._forgotten = first
        self._most = most
        self._entries: OrderedDict[tuple[str, str], FeedEntry] = OrderedDict()
        self._news = asyncio.Event()
        self._closed = False
        self._readers = 0

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
        self._news.set()

    def close(self) -> None:
        """End all readers."""
        self._closed = True
        self._news.set()

    def knows(self, after: int) -> bool:
        """Tell whether nothing after this number was forgotten."""
        return self._forgotten <= after <= self._seq

    def since(self, after: int) -> list[FeedEntry]:
        """Return the entries after a number, oldest first."""
        found: list[FeedEntry] = []
        for entry in reversed(self._entries.values()):
            if entry.seq <= after:
                break
            found.append(entry)
        return found[::-1]

    async def follow(self, after: int | None, render: Render) -> AsyncGenerator[FeedEvent, None]:
        """Yield what a reader may see, for ever or until the feed is closed."""
        self._readers += 1
        try:
            async for event in self._follow(after, render):
                yield event
        finally:
            self._readers -= 1

    async def _follow(self, after: int | None, render: Render) -> AsyncGenerator[FeedEvent, None]:
        cursor = self._seq if after is None else after
        while not self._closed:
            if not self.knows(cursor):
                cursor = self._seq
                yield FeedEvent(cursor, "reset", b"{}")
            if self._news.is_set():
                self._news = asyncio.Event()
            news = self._news
            for number, entry in enumerate(self.since(cursor), 1):
                if number % TURN == 0:
                    await asyncio.sleep(0)
                data = render(entry)
                cursor = entry.seq
                if data is not None:
                    yield FeedEvent(entry.seq, entry.kind, data)
            if self._seq == cursor and not self._closed:
                await news.wait()
