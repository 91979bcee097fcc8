"""Limit of concurrent page renders per reader, so that one reader cannot delay others' pages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from benchpool_scheduler.errors import TooMany

AT_ONCE = 3
"""Maximum number of concurrent renders per reader."""
MOST = 50
"""Maximum number of rendering and queued pages per reader; a browser with many tabs needs fewer."""


@dataclass(eq=False)
class PageTurn:
    """Rendering and queued pages of one reader."""

    asked: int = 0
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def end(self) -> None:
        """Release a render slot."""
        self.asked -= 1
        self.places.release()


class RenderLimiter:
    """Render slots of all readers."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, PageTurn] = WeakValueDictionary()

    async def begin(self, reader: str) -> PageTurn:
        """Wait for a render slot of a reader; the caller must release it with ``end``.

        Errors: TooMany.
        """
        turn = self._turns.setdefault(reader, PageTurn())
        if turn.asked >= MOST:
            raise TooMany(
                f"{turn.asked} pages that {reader} requested are still pending (limit: {MOST}). "
                "Wait for them.",
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
