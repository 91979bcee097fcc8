"""Tells all readers what happens, from one task: nobody is woken for each reader.

A few are told at once. When many read, what happens is told to each in pieces, group after group,
so that each is asked about and written to seldom enough to leave the service free for others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchpool_scheduler.service.views.events import Feed, FeedEntry, FeedEvent
from benchpool_scheduler.service.views.visibility import Visibility

log = logging.getLogger(__name__)

FEW = 20
"""So many readers are told at once."""
EACH_S = 0.002
"""Each reader beyond ``FEW`` makes a piece this many seconds longer, up to a second."""
SLOTS = 10
"""Readers are told in so many groups, one after the other; those of a group get the same piece."""
IN_A_ROW = 16
"""After so many readers other tasks of the loop have their turn."""


class Listener(Protocol):
    """Who reads."""

    def ready(self, then: Callable[[], None]) -> bool:
        """Tell whether it can take more now; where it cannot, it calls ``then`` when it can."""

    def take(self, piece: Sequence[FeedEvent]) -> None:
        """Take what it is told; the same object for all who are told the same."""

    def end(self) -> None:
        """Know that nothing more comes."""


RenderPiece = Callable[[Visibility, Sequence[FeedEntry]], Sequence[FeedEvent]]
"""Returns what those with some sight are told of the entries of a piece."""


@dataclass(eq=False, slots=True)
class _Reader:
    listener: Listener
    sight: Visibility
    cursor: int
    reads: bool = True


class _Pieces:
    """What readers are told in one turn: looked for once for all who have read equally far."""

    def __init__(self, feed: Feed, until: int) -> None:
        self.until = until
        self._feed = feed
        self._known: dict[int, Sequence[FeedEntry]] = {}

    def after(self, cursor: int) -> Sequence[FeedEntry]:
        """Return what is told after a number."""
        known = self._known.get(cursor)
        if known is None:
            known = self._known[cursor] = self._feed.piece(cursor, self.until)
        return known


class Broadcast:
    """Those who read a feed now, and the task that tells them."""

    def __init__(self, feed: Feed, render: RenderPiece) -> None:
        self._feed = feed
        self._render = render
        self._slots: tuple[dict[_Reader, None], ...] = tuple({} for _ in range(SLOTS))
        self._readers = self._came = 0
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def to(self, listener: Listener, sight: Visibility, after: int | None) -> Iterator[None]:
        """Tell a reader what happens after a number, None from now, until it leaves.

        Starts with an event ``reset`` when the events after ``after`` are no longer known: the
        reader then asks for everything again.
        """
        reader = _Reader(listener, sight, self._feed.seq if after is None else after)
        slot = self._slots[self._came % SLOTS]
        self._came += 1
        self._readers += 1
        slot[reader] = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        self._feed.nudge()
        try:
            with self._feed.read():
                yield
        finally:
            reader.reads = False
            del slot[reader]
            self._readers -= 1
            if not self._readers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        feed = self._feed
        while not feed.closed:
            news = feed.news()
            if self._readers <= FEW:
                await self._tell([it for slot in self._slots for it in slot])
            else:
                for slot in self._slots:
                    step_s = min(1.0, EACH_S * (self._readers - FEW)) / SLOTS
                    if slot:
                        await feed.rest(max(0.0, step_s))
                        await self._tell(list(slot))
            if not feed.closed:
                await news.wait()
        for slot in self._slots:
            for reader in list(slot):
                reader.listener.end()

    async def _tell(self, readers: Iterable[_Reader]) -> None:
        """Tell these what has happened until now: the same to all who may see the same."""
        until = self._feed.seq
        while readers and not self._feed.closed:
            behind: list[_Reader] = []
            pieces = _Pieces(self._feed, until)
            for number, reader in enumerate(readers, 1):
                if self._tell_one(reader, pieces):
                    behind.append(reader)
                if number % IN_A_ROW == 0:
                    await asyncio.sleep(0)
            readers = behind
            await asyncio.sleep(0)

    def _tell_one(self, reader: _Reader, pieces: _Pieces) -> bool:
        """Tell one reader a piece, if it can take one; return whether there is more for it."""
        if not reader.reads or not reader.listener.ready(self._feed.nudge):
            return False
        piece = pieces.after(reader.cursor)
        if not piece:
            return False
        reader.cursor = piece[-1].seq
        try:
            events = self._render(reader.sight, piece)
            if events:
                reader.listener.take(events)
        except Exception:
            # One that cannot be told must not keep the others from being told.
            log.exception("a reader of events could not be told; its stream ends")
            reader.listener.end()
            return False
        return reader.cursor < pieces.until
