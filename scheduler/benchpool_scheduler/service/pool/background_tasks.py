"""The parts of a pool that go on until it is closed; one that ends before is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Tasks that are begun together and cancelled together.

    Args:
        ended: Called with a sentence when a part has ended that should go on for ever: the process
            must end too, and be started again.
    """

    def __init__(self, ended: Callable[[str], None] | None) -> None:
        self._ended = ended
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def begin(
        self, name: str, work: Coroutine[None, None, None], *, may_return: bool = False
    ) -> None:
        """Begin a part, by the name that people read; one that may return may end well."""

        def over(task: asyncio.Task[None]) -> None:
            failed = None if task.cancelled() else task.exception()
            if self._closing or task.cancelled() or (may_return and failed is None):
                return
            log.error("a part of the service ended: %s", name, exc_info=failed)
            if self._ended is not None:
                self._ended(f"a part of it has ended: {name} ({failed!r}).")

        task = asyncio.create_task(work)
        task.add_done_callback(over)
        self._tasks.append(task)

    def closing(self) -> None:
        """From now on parts may end."""
        self._closing = True

    def cancel(self) -> None:
        """Tell every part to end."""
        for task in self._tasks:
            task.cancel()

    async def gone(self) -> None:
        """Return when every part has ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
