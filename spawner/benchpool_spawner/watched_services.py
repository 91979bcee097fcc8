"""Lets the Hub start a service again as soon as its process ends.

The Hub looks at the processes of its services every 30 s. For so long the pool would be away after
a ``kill -9`` of what keeps the scheduler running.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
"""Pauses before a start. They double, and begin anew after a run of ``STEADY_S``."""
STEADY_S = 60.0


def next_pause(last_s: float, lived_s: float) -> float:
    """Return the seconds before the next start, from the last pause and how long it lived since.

    >>> next_pause(0.0, 1.0), next_pause(0.2, 1.0), next_pause(20.0, 1.0), next_pause(20.0, 61.0)
    (0.2, 0.4, 30.0, 0.2)
    """
    if not last_s or lived_s > STEADY_S:
        return FIRST_PAUSE_S
    return min(2 * last_s, LONGEST_PAUSE_S)


class EndWatch:
    """Waits for the end of a process, and tells of it after a pause.

    Args:
        pid: A process that runs. Errors: OSError: the kernel has no descriptor for it.
        pause_s: Returns the pause in seconds, from how long the process lived.
        ended: Called once; not after ``stop``.
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
    """Let the Hub of this process watch its services; its own looks go on."""
    from jupyterhub.services.service import _ServiceSpawner

    watch_all(_ServiceSpawner)


def watch_all(kind: Any) -> None:
    """Let a class of spawners watch its processes: they poll at once when one ends."""
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
            spawner.log.warning("The end of process %s is seen late (%s)", spawner.pid, failed)

    def stop_polling(spawner: Any) -> None:
        end(spawner)
        watching: EndWatch | None = getattr(spawner, "end_watch", None)
        if watching is not None:
            watching.stop()

    kind.start_polling, kind.stop_polling = start_polling, stop_polling
