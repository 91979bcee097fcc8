"""How many pages of one reader are made at once: who asks for many waits for them alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from benchpool_scheduler.errors import TooMany

AT_ONCE = 3
"""Pages of one reader that are made at the same time."""
MOST = 50
"""Pages of one reader that are made or wait; a browser with many tabs asks for fewer."""


@dataclass(eq=False)
class PageTurn:
    """What one reader has asked for and not been answered yet."""

    asked: int = 0
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def end(self) -> None:
        """Let the next page of the reader begin."""
        self.asked -= 1
        self.places.release()


class RenderLimiter:
    """The readers who wait for pages now."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, PageTurn] = WeakValueDictionary()

    async def begin(self, reader: str) -> PageTurn:
        """Wait until a page of a reader may be made; its turn is to be ended.

        Errors: TooMany.
        """
        turn = self._turns.setdefault(reader, PageTurn())
        if turn.asked >= MOST:
            raise TooMany(
                f"{turn.asked} pages that {reader} asked for are not made yet, and {MOST} may be: "
                "wait for them.",
                code="too-many-pages",
                numbers={"pages": turn.asked, "limit": MOST},
            )
        turn.asked += 1
        try:
            await turn.places.acquire()
        except asyncio.CancelledError:
            turn.asked -= 1
            raise
        return turn
