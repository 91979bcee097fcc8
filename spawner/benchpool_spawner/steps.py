"""The steps of a start as they really happen, each with its seconds, for the progress page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened: a sentence, seconds since the start, and how far along it is.

    ``more`` goes to the page and to REST clients as data beside the sentence.
    """

    text: str
    after_s: float
    percent: int
    more: Mapping[str, object] = field(default_factory=dict)

    def event(self) -> dict[str, object]:
        """Return it as JupyterHub's progress stream sends it."""
        message = f"{self.after_s:5.1f} s  {self.text}"
        return {**self.more, "progress": self.percent, "message": message}


class Steps:
    """What a start has done so far; any number of pages may follow it, each from the beginning."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._steps: list[Step] = []
        self._changed = asyncio.Event()
        self._ended = False

    def add(self, text: str, percent: int, **more: object) -> None:
        """Note a step; one that says the same as the last one is none."""
        if self._steps and self._steps[-1].text == text:
            return
        self._steps.append(Step(text, time.monotonic() - self._started, percent, more))
        self._changed.set()
        self._changed = asyncio.Event()

    def end(self) -> None:
        """Let who follows come to an end: no more steps will be told."""
        self._ended = True
        self._changed.set()

    async def follow(self) -> AsyncIterator[Step]:
        """Yield all steps, and those to come until they are said to have ended."""
        seen = 0
        while True:
            changed = self._changed
            while seen < len(self._steps):
                yield self._steps[seen]
                seen += 1
            if self._ended:
                return
            await changed.wait()
