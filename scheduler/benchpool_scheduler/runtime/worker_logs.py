"""Reading of workers' logs from the files in the state folder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from benchpool_scheduler.runtime import LogChunk, WorkerId
from benchpool_scheduler.worker import log_reader
from benchpool_scheduler.worker.folders import Folders


class WorkerLogs:
    """Log methods of the runtime port.

    Args:
        ended: Returns whether a worker's log is complete.
        pause: Waits until a worker's log may have grown, at most this number of seconds.
    """

    def __init__(
        self,
        folders: Folders,
        ended: Callable[[WorkerId], bool],
        pause: Callable[[WorkerId, float], Awaitable[object]],
    ) -> None:
        self._folders = folders
        self._ended = ended
        self._pause = pause

    async def read(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return at most ``limit`` bytes from ``offset``, or from the next stored byte."""
        folder = self._folders.worker(worker)
        ended = self._ended(worker)  # checked first, so that later bytes cannot be missed
        start, data = await asyncio.to_thread(log_reader.read, folder, offset, limit)
        if data:
            ended = ended and start + len(data) >= log_reader.size(folder)
        return LogChunk(start, data, ended, skipped=start - offset)

    async def offset_at(self, worker: WorkerId, since: float | None) -> int:
        """Return the first offset written at ``since`` or later; None returns the current end."""
        folder = self._folders.worker(worker)
        if since is None:
            return log_reader.size(folder)
        return await asyncio.to_thread(log_reader.offset_at, folder, since)

    async def wait(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Wait until there are bytes after ``offset`` or the log ended; return False on timeout."""
        folder = self._folders.worker(worker)
        deadline = time.monotonic() + timeout_s
        while not self._ended(worker) and log_reader.size(folder) <= offset:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            # No await between the check above and this call, so that no growth is missed.
            await self._pause(worker, left)
        return True
