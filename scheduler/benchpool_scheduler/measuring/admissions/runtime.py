"""A runtime without processes: a job's command is ``run SECONDS``, and it ends after them.

Like Kueue's test it keeps no progress: a job that was evicted starts again from zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from benchpool_scheduler.runtime import (
    Device,
    EndedBy,
    Launch,
    LogChunk,
    NodeFacts,
    Notice,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
    WorkerStarted,
)
from benchpool_scheduler.service import Clock

NODE = "pool"
TERMINATED = 143


def units(count: int) -> tuple[Device, ...]:
    """Return so many GPUs of one node."""
    return tuple(
        Device(f"GPU-{index}", index, "unit", NODE, None, simulated=True) for index in range(count)
    )


class TimedRuntime:
    """Starts and ends workers by timers of the loop.

    Attributes:
        admitted: When each job was started last, by its id. ``starts``: how often any was.
        evictions: How often one was stopped to make room.
        finished: Jobs that ran to their end. ``last_end``: when the last one did.
    """

    def __init__(self, gpus: Sequence[Device], clock: Clock) -> None:
        self._gpus = tuple(gpus)
        self._clock = clock
        self._inbox: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self._timers: dict[WorkerId, asyncio.TimerHandle] = {}
        self._known: set[WorkerId] = set()
        self.admitted: dict[str, float] = {}
        self.starts = 0
        self.evictions = 0
        self.finished = 0
        self.last_end = 0.0

    # ------------------------------------------------------------------ the port

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Begin with nothing."""

    async def close(self) -> None:
        """End the stream of events; nothing runs on."""
        for timer in self._timers.values():
            timer.cancel()
        self._inbox.put_nowait(None)

    async def devices(self) -> tuple[Device, ...]:
        """Return the units."""
        return self._gpus

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return nothing: nodes are counts of units here."""
        return ()

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return that any node will do."""
        return None

    async def start(self, launch: Launch) -> None:
        """Run a job for the time that its command names."""
        worker, now = launch.worker, self._clock.now()
        if worker in self._known:
            return
        self._known.add(worker)
        self.starts += 1
        self.admitted[worker.job] = now
        self._inbox.put_nowait(WorkerStarted(worker, now))
        loop = asyncio.get_running_loop()
        self._timers[worker] = loop.call_later(float(launch.argv[1]), self._finish, worker)

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """End a worker at once."""
        timer = self._timers.pop(worker, None)
        if timer is None:
            return
        timer.cancel()
        self.evictions += 1
        now = self._clock.now()
        self._inbox.put_nowait(WorkerEnded(worker, now, TERMINATED, EndedBy.NOTICE))

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield what happens."""
        while (event := await self._inbox.get()) is not None:
            yield event

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return an empty log."""
        return LogChunk(offset, b"", ended=worker not in self._timers)

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        """Return the beginning."""
        return 0

    async def wait_log(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Return at once: nothing is ever written."""
        return False

    async def forget(self, job: str) -> None:
        """Do nothing: there are no files."""

    # ------------------------------------------------------------------ inside

    def _finish(self, worker: WorkerId) -> None:
        del self._timers[worker]
        self.finished += 1
        self.last_end = self._clock.now()
        self._inbox.put_nowait(WorkerEnded(worker, self.last_end, 0, EndedBy.ITSELF))
