"""The steps of a start as they really happen, each with its seconds, for the progress page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened: a sentence, seconds since the start, and how far along it is."""

    text: str
    after_s: float
    percent: int


class Steps:
    """What a start has done so far; any number of pages may follow it, each from the beginning."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._steps: list[Step] = []
        self._changed = asyncio.Event()

    def add(self, text: str, percent: int) -> None:
        """Note a step."""
        self._steps.append(Step(text, time.monotonic() - self._started, percent))
        self._changed.set()
        self._changed = asyncio.Event()

    async def follow(self) -> AsyncIterator[Step]:
        """Yield all steps, and those to come; never ends by itself."""
        seen = 0
        while True:
            changed = self._changed
            while seen < len(self._steps):
                yield self._steps[seen]
                seen += 1
            await changed.wait()
