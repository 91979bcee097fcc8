"""Background tasks of a pool, which run until it is closed; an early exit is reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Tasks that are started one by one and cancelled together.

    Args:
        ended: Called with a sentence when a task has exited early; the process must then exit and
            be restarted.
    """

    def __init__(self, ended: Callable[[str], None] | None) -> None:
        self._ended = ended
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def begin(
        self, name: str, work: Coroutine[None, None, None], *, may_return: bool = False
    ) -> None:
        """Start a task under a name for logs; a task that may return may exit without error."""

        def over(task: asyncio.Task[None]) -> None:
            failed = None if task.cancelled() else task.exception()
            if self._closing or task.cancelled() or (may_return and failed is None):
                return
            log.error('background task "%s" exited', name, exc_info=failed)
            if self._ended is not None:
                self._ended(f'background task "{name}" exited: {failed!r}.')

        task = asyncio.create_task(work)
        task.add_done_callback(over)
        self._tasks.append(task)

    def closing(self) -> None:
        """Expect exits from now on."""
        self._closing = True

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks:
            task.cancel()

    async def gone(self) -> None:
        """Wait until all tasks have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
