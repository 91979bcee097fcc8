"""Runtime without processes: a job's command is ``run SECONDS``, and it ends after them.

Like Kueue's test it keeps no progress: an evicted job starts again from zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from benchpool_scheduler.runtime import Device, EndedBy, Launch, Notice, WorkerId
from benchpool_scheduler.runtime.simulated import SimulatedRuntime, simulated_devices
from benchpool_scheduler.service import Clock

NODE = "pool"
TERMINATED = 143


def units(count: int) -> tuple[Device, ...]:
    """Return this number of GPUs of one node."""
    return simulated_devices(count, "unit", NODE, None)


class TimedRuntime(SimulatedRuntime):
    """Runtime that starts and ends workers by timers of the loop.

    Attributes:
        admitted: Time of each job's last start, by its ID. ``starts``: number of all starts.
        evictions: Number of stops by preemption.
        finished: Number of jobs that ran to their end. ``last_end``: time of the last end.
    """

    def __init__(self, gpus: Sequence[Device], clock: Clock) -> None:
        super().__init__(gpus)
        self._clock = clock
        self._timers: dict[WorkerId, asyncio.TimerHandle] = {}
        self.admitted: dict[str, float] = {}
        self.starts = 0
        self.evictions = 0
        self.finished = 0
        self.last_end = 0.0

    async def close(self) -> None:
        """End the stream of events and all workers."""
        for timer in self._timers.values():
            timer.cancel()
        await super().close()

    async def run_worker(self, launch: Launch) -> None:
        """Run a job for the time given by its command."""
        worker, now = launch.worker, self._clock.now()
        self.starts += 1
        self.admitted[worker.job] = now
        self.begin(worker, now)
        loop = asyncio.get_running_loop()
        self._timers[worker] = loop.call_later(float(launch.argv[1]), self._finish, worker)

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """End a worker immediately."""
        timer = self._timers.pop(worker, None)
        if timer is None:
            return
        timer.cancel()
        self.evictions += 1
        self.end(worker, TERMINATED, EndedBy.NOTICE, self._clock.now())

    def _finish(self, worker: WorkerId) -> None:
        del self._timers[worker]
        self.finished += 1
        self.last_end = self._clock.now()
        self.end(worker, 0, EndedBy.ITSELF, self.last_end)
