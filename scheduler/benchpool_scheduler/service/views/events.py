"""What happened, for readers of server-sent events.

The feed keeps one entry per job, the newest: a reader that was away gets each job that changed
meanwhile once, as it is now. Sequence numbers begin at the start time of the process in
microseconds, so they grow over restarts; a reader with a number from before gets ``reset``.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["job", "pool", "deleted", "reset"]
MOST = 20_000
"""Entries that are kept."""
FEW = 20
"""So many readers are told at once. When more read, what happens is told to each in pieces, so that
it is woken, asked about and written to seldom enough to leave the service free for others."""
EACH_S = 0.002
"""Each reader beyond ``FEW`` makes a piece this many seconds longer, up to a second."""
SLOTS = 10
"""Readers are told in so many groups, one after the other; those of a group get the same piece."""
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
RenderPiece = Callable[[Sequence[FeedEntry]], Sequence[FeedEvent]]
"""Returns what one reader is told of the entries of a piece."""


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
        self._end = asyncio.Event()
        self._readers = self._came = 0

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
        self._end.set()
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
        async with contextlib.aclosing(self._pieces(after)) as pieces:
            async for piece in pieces:
                for entry in piece:
                    event = event_of(entry, render)
                    if event is not None:
                        yield event

    async def pieces(
        self, after: int | None, render: RenderPiece
    ) -> AsyncGenerator[Sequence[FeedEvent], None]:
        """Yield the same, all that there is at once."""
        async with contextlib.aclosing(self._pieces(after)) as pieces:
            async for piece in pieces:
                events = render(piece)
                if events:
                    yield events

    async def _pieces(self, after: int | None) -> AsyncGenerator[list[FeedEntry], None]:
        self._readers += 1
        self._came += 1
        slot = self._came % SLOTS
        cursor = self._seq if after is None else after
        try:
            while not self._closed:
                if not self.knows(cursor):
                    cursor = self._seq
                    yield [FeedEntry(cursor, "reset")]
                if self._news.is_set():
                    self._news = asyncio.Event()
                news, entries = self._news, self.since(cursor)
                for first in range(0, len(entries), TURN):
                    if first:
                        await asyncio.sleep(0)
                    piece = entries[first : first + TURN]
                    cursor = piece[-1].seq
                    yield piece
                if self._seq == cursor and not self._closed:
                    await news.wait()
                    await self._gather(slot)
        finally:
            self._readers -= 1

    async def _gather(self, slot: int) -> None:
        """Let more happen before the readers of a slot are told, all at the same instant."""
        if self._readers <= FEW:
            return
        period_s = min(1.0, EACH_S * (self._readers - FEW))
        loop = asyncio.get_running_loop()
        turns = loop.time() / period_s - slot / SLOTS
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at((math.floor(turns) + 1 + slot / SLOTS) * period_s):
                await self._end.wait()


def event_of(entry: FeedEntry, render: Render) -> FeedEvent | None:
    """Return what a reader is told of an entry, None when it may not see it."""
    data = b"{}" if entry.kind == "reset" else render(entry)
    return None if data is None else FeedEvent(entry.seq, entry.kind, data)
