"""Distribution of events to all readers from one task, which avoids a task per reader.

A few readers get events at once. Many readers get them in batches, one group of readers after the
other. Each reader is then served seldom enough to leave the service free for other work.
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
"""Maximum number of readers that get events at once."""
EACH_S = 0.002
"""Increase of the batch interval per reader beyond ``FEW``, in seconds; the maximum is 1 s."""
SLOTS = 10
"""Number of groups of readers, served one after the other. A group gets the same batch."""
IN_A_ROW = 16
"""Number of readers served before other tasks of the loop run."""


class Listener(Protocol):
    """A reader of events."""

    def ready(self, then: Callable[[], None]) -> bool:
        """Return whether it can take more now. If not, it calls ``then`` as soon as it can."""

    def take(self, piece: Sequence[FeedEvent]) -> None:
        """Take a batch of events; the same object for all readers of the same events."""

    def end(self) -> None:
        """End the stream: no more events follow."""


RenderPiece = Callable[[Visibility, Sequence[FeedEntry]], Sequence[FeedEvent]]
"""Returns the events that readers with this visibility get for a batch of entries."""


@dataclass(eq=False, slots=True)
class _Reader:
    listener: Listener
    sight: Visibility
    cursor: int
    reads: bool = True


class _Pieces:
    """Batches of one turn, found once for all readers at the same position."""

    def __init__(self, feed: Feed, until: int) -> None:
        self.until = until
        self._feed = feed
        self._known: dict[int, Sequence[FeedEntry]] = {}

    def after(self, cursor: int) -> Sequence[FeedEntry]:
        """Return the entries after a number."""
        known = self._known.get(cursor)
        if known is None:
            known = self._known[cursor] = self._feed.piece(cursor, self.until)
        return known


class Broadcast:
    """The present readers of a feed, and the task that serves them."""

    def __init__(self, feed: Feed, render: RenderPiece) -> None:
        self._feed = feed
        self._render = render
        self._slots: tuple[dict[_Reader, None], ...] = tuple({} for _ in range(SLOTS))
        self._readers = self._came = 0
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def to(self, listener: Listener, sight: Visibility, after: int | None) -> Iterator[None]:
        """Send a reader the events after a number, until it leaves; None means from now.

        Starts with an event ``reset`` if the events after ``after`` are no longer stored. The
        reader then requests everything again.
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
                await self._send([it for slot in self._slots for it in slot])
            else:
                for slot in self._slots:
                    step_s = min(1.0, EACH_S * (self._readers - FEW)) / SLOTS
                    if slot:
                        await feed.rest(max(0.0, step_s))
                        await self._send(list(slot))
            if not feed.closed:
                await news.wait()
        for slot in self._slots:
            for reader in list(slot):
                reader.listener.end()

    async def _send(self, readers: Iterable[_Reader]) -> None:
        """Send these readers all events up to now: the same to all with the same visibility."""
        until = self._feed.seq
        while readers and not self._feed.closed:
            behind: list[_Reader] = []
            pieces = _Pieces(self._feed, until)
            for number, reader in enumerate(readers, 1):
                if self._send_one(reader, pieces):
                    behind.append(reader)
                if number % IN_A_ROW == 0:
                    await asyncio.sleep(0)
            readers = behind
            await asyncio.sleep(0)

    def _send_one(self, reader: _Reader, pieces: _Pieces) -> bool:
        """Send one reader a batch, if it can take one. Return whether more follows for it."""
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
            # A reader that fails must not block the others.
            log.exception("an event could not be sent to a client; its stream ends")
            reader.listener.end()
            return False
        return reader.cursor < pieces.until
