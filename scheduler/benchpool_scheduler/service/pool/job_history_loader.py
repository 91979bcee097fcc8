"""Jobs that ended long ago: read beside the work, after the first pass, and waited for."""

from __future__ import annotations

import asyncio
import contextlib

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.process import interpreter

FIRST_PASS_S = 2.0
"""The history is read after the first pass, or after so many seconds."""

WHOLE_S = 20.0
"""Whoever asks for jobs while the history is read waits so long at most."""


class JobHistoryLoader:
    """The reading of a ledger's history."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pass_made = asyncio.Event()

    def pass_made(self, _: object) -> None:
        """Take notice of a pass."""
        self._pass_made.set()

    async def read(self) -> None:
        """Read what ended long ago, beside the work but after the first pass."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_PASS_S):
                await self._pass_made.wait()
        await self._ledger.read_older()
        interpreter.settle(len(self._ledger.job_index.jobs))

    async def whole(self) -> None:
        """Wait until all jobs are known. Errors: Unavailable."""
        try:
            async with asyncio.timeout(WHOLE_S):
                await self._ledger.whole.wait()
        except TimeoutError:
            raise Unavailable(
                f"The scheduler has started and still reads its ended jobs, after {WHOLE_S:g} s: "
                "ask again in a moment.",
                code="reads-history",
                numbers={"seconds": WHOLE_S},
            ) from None
