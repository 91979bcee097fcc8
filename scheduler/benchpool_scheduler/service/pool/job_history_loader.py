"""Loader of jobs that ended long ago, after the first pass; readers wait for it."""

from __future__ import annotations

import asyncio
import contextlib

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.process import interpreter

FIRST_PASS_S = 2.0
"""Timeout for the first pass, after which the history is read, in seconds."""

WHOLE_S = 20.0
"""Timeout for readers of jobs while the history is loaded, in seconds."""


class JobHistoryLoader:
    """Loader of a ledger's history."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pass_made = asyncio.Event()

    def pass_made(self, _: object) -> None:
        """Allow loading, since a pass was made."""
        self._pass_made.set()

    async def read(self) -> None:
        """Read the jobs that ended long ago, after the first pass or its timeout."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_PASS_S):
                await self._pass_made.wait()
        await self._ledger.read_older()
        interpreter.settle(len(self._ledger.job_index.jobs))

    async def whole(self) -> None:
        """Wait until all jobs are loaded. Errors: Unavailable."""
        try:
            async with asyncio.timeout(WHOLE_S):
                await self._ledger.whole.wait()
        except TimeoutError:
            raise Unavailable(
                f"The scheduler still reads its ended jobs {WHOLE_S:g} s after its start. "
                "Try again in a moment.",
                code="reads-history",
                numbers={"seconds": WHOLE_S},
            ) from None
