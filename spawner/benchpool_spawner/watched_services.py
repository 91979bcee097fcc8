"""Patch that makes the Hub restart a service as soon as its process ends.

The Hub checks the processes of its services every 30 s. After a ``kill -9`` of the scheduler's
supervisor the pool would be down until then.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
"""Pauses before a start, in seconds. They double, and reset after a run of ``STEADY_S``."""
STEADY_S = 60.0


def next_pause(last_s: float, lived_s: float) -> float:
    """Return the next pause in seconds, from the last one and the run time since.

    >>> next_pause(0.0, 1.0), next_pause(0.2, 1.0), next_pause(20.0, 1.0), next_pause(20.0, 61.0)
    (0.2, 0.4, 30.0, 0.2)
    """
    if not last_s or lived_s > STEADY_S:
        return FIRST_PAUSE_S
    return min(2 * last_s, LONGEST_PAUSE_S)


class EndWatch:
    """Watch for the end of a process, with a callback after a pause.

    Args:
        pid: ID of a running process. Errors: OSError if the kernel provides no descriptor for it.
        pause_s: Returns the pause in seconds, from the run time of the process.
        ended: Called once, unless ``stop`` was called before.
    """

    def __init__(
        self, pid: int, pause_s: Callable[[float], float], ended: Callable[[], Awaitable[object]]
    ) -> None:
        self._descriptor = os.pidfd_open(pid)
        self._began = time.monotonic()
        self._pause_s = pause_s
        self._ended = ended
        self._task: asyncio.Task[None] | None = asyncio.create_task(self._run())

    async def _run(self) -> None:
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._descriptor, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
        await asyncio.sleep(self._pause_s(time.monotonic() - self._began))
        self._task = None
        await self._ended()

    def stop(self) -> None:
        """End the watch."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


def watch() -> None:
    """Patch the Hub of this process to watch its services. Its own checks continue."""
    from jupyterhub.services.service import _ServiceSpawner

    watch_all(_ServiceSpawner)


def watch_all(kind: Any) -> None:
    """Patch a class of spawners so that they poll immediately when their process ends."""
    pauses: dict[tuple[str, ...], float] = {}
    begin: Callable[[Any], None] = kind.start_polling
    end: Callable[[Any], None] = kind.stop_polling

    def start_polling(spawner: Any) -> None:
        begin(spawner)
        command = tuple(spawner.cmd)

        def pause_s(lived_s: float) -> float:
            pauses[command] = next_pause(pauses.get(command, 0.0), lived_s)
            return pauses[command]

        try:
            spawner.end_watch = EndWatch(spawner.pid, pause_s, spawner.poll_and_notify)
        except OSError as failed:
            spawner.log.warning("The end of process %s is detected late (%s)", spawner.pid, failed)

    def stop_polling(spawner: Any) -> None:
        end(spawner)
        watching: EndWatch | None = getattr(spawner, "end_watch", None)
        if watching is not None:
            watching.stop()

    kind.start_polling, kind.stop_polling = start_polling, stop_polling
