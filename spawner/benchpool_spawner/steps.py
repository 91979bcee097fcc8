"""Steps of a start as they happen, each with its time, for the progress page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a start: a sentence, seconds since the start, and progress in percent.

    ``more`` is further data for the page and REST clients.
    """

    text: str
    after_s: float
    percent: int
    more: Mapping[str, object] = field(default_factory=dict)

    def event(self) -> dict[str, object]:
        """Return the step as an event of JupyterHub's progress stream."""
        message = f"{self.after_s:5.1f} s  {self.text}"
        return {**self.more, "progress": self.percent, "message": message}


class Steps:
    """Steps of a start. Any number of pages may follow them, each from the beginning."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._steps: list[Step] = []
        self._changed = asyncio.Event()
        self._ended = False

    def add(self, text: str, percent: int, **more: object) -> None:
        """Add a step, unless its text equals that of the last one."""
        if self._steps and self._steps[-1].text == text:
            return
        self._steps.append(Step(text, time.monotonic() - self._started, percent, more))
        self._changed.set()
        self._changed = asyncio.Event()

    def end(self) -> None:
        """End the steps, and so all pages that follow them."""
        self._ended = True
        self._changed.set()

    async def follow(self) -> AsyncIterator[Step]:
        """Yield all steps, including future ones, until they end."""
        seen = 0
        while True:
            changed = self._changed
            while seen < len(self._steps):
                yield self._steps[seen]
                seen += 1
            if self._ended:
                return
            await changed.wait()
