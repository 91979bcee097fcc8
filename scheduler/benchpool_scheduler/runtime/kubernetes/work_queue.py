"""Queue of actions that are repeated while the API server is unavailable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable

from benchpool_scheduler.kube import KubeUnavailable

log = logging.getLogger(__name__)

AGAIN_S = (0.5, 15.0)
"""Delay after the API server was unavailable, in seconds: the first and the longest."""

Action = Callable[[], Coroutine[None, None, None]]


class WorkQueue:
    """One task for each key.

    A request for a key in progress is executed afterwards, because it may have come too late for
    the current execution.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._again: dict[Hashable, Action] = {}

    def ask(self, key: Hashable, action: Action) -> None:
        """Run an action, one at a time for each key; returns at once."""
        if key in self._tasks:
            self._again[key] = action
            return
        self._tasks[key] = asyncio.create_task(self._until_done(key, action))

    async def close(self) -> None:
        """Cancel all actions."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_done(self, key: Hashable, action: Action) -> None:
        wait_s = AGAIN_S[0]
        while True:
            try:
                await action()
            except KubeUnavailable as away:
                log.warning("%s: %s", key, away)
                await asyncio.sleep(wait_s)
                wait_s = min(AGAIN_S[1], wait_s * 2)
                action = self._again.pop(key, action)
                continue
            except Exception:
                log.exception("%s failed", key)
            following = self._again.pop(key, None)
            if following is None:
                # No await after the check above: a later request starts a new task.
                del self._tasks[key]
                return
            action = following
