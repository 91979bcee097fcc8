"""Stops that are retried until they are carried out.

A stop that the runtime cannot carry out (no space, no descriptor, a missing folder) is retried with
growing pauses while its worker lives. A stop that was carried out is resent if the worker outlives
its grace period: it may have been lost with a file, a signal or a process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from benchpool_scheduler.phrases import count
from benchpool_scheduler.runtime import Notice, Runtime, WorkerId
from benchpool_scheduler.service.execution import recovery
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState

log = logging.getLogger(__name__)

AGAIN_S = (0.2, 30.0)
"""First and longest pause before a failed stop is retried, in seconds."""

OVERDUE_S = (5.0, 60.0)
"""First and longest delay before a stop is resent to a surviving worker, in seconds.

The first one counts from the end of the grace period.
"""


class Stops:
    """Sends stops to workers until they take effect.

    Attributes:
        sleep: Waits for the given seconds between two tries.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._kept: dict[WorkerId, Notice] = {}
        self._trying: dict[WorkerId, asyncio.Task[None]] = {}
        self._due: dict[WorkerId, tuple[float, float]] = {}

    @property
    def waiting(self) -> int:
        """Number of stops that are not written yet."""
        return len(self._kept)

    async def send(self, worker: WorkerId, notice: Notice) -> None:
        """Send a stop to a worker. A failure is retried in the background. Never raises."""
        kept = self._kept.get(worker)
        if kept is not None and kept.kind == "cancel" and notice.kind == "pause":
            notice = kept
        error = await self._try(worker, notice)
        if error is None:
            self._kept.pop(worker, None)
            self._report()
            return
        log.warning("stop request to worker %s failed: %s", worker, error)
        self._kept[worker] = notice
        self._report(error)
        if worker not in self._trying:
            task = asyncio.create_task(self._try_again(worker))
            self._trying[worker] = task
            task.add_done_callback(lambda _: self._trying.pop(worker, None))

    async def close(self) -> None:
        """Cancel the retries. The next start of the service resends all stops."""
        tasks = list(self._trying.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def repeat(self) -> None:
        """Resend stops to workers that have long outlived their grace period."""
        now = self._observed.settings.clock.now()
        under_way = dict(recovery.stops_under_way(self._ledger, self._observed))
        for worker in [worker for worker in self._kept if not self._lives(worker)]:
            del self._kept[worker]
            self._report()
        self._due = {worker: due for worker, due in self._due.items() if worker in under_way}
        for worker, notice in under_way.items():
            at, pause = self._due.setdefault(
                worker, (now + notice.grace_s + OVERDUE_S[0], 2 * OVERDUE_S[0])
            )
            if now >= at and worker not in self._kept:
                log.warning("worker %s still runs after its stop request; resending", worker)
                await self.send(worker, notice)
                self._due[worker] = (now + pause, min(2 * pause, OVERDUE_S[1]))

    async def _try_again(self, worker: WorkerId) -> None:
        pause = AGAIN_S[0]
        while worker in self._kept:
            await self.sleep(pause)
            pause = min(2 * pause, AGAIN_S[1])
            notice = self._kept.get(worker)
            if notice is not None and self._lives(worker):
                error = await self._try(worker, notice)
                if error is not None:
                    self._report(error)
                    continue
            self._kept.pop(worker, None)
        self._report()

    async def _try(self, worker: WorkerId, notice: Notice) -> Exception | None:
        try:
            await self._runtime.stop(worker, notice)
        except Exception as error:
            return error
        return None

    def _lives(self, worker: WorkerId) -> bool:
        attempt = self._ledger.attempt(worker.job, worker.attempt)
        return attempt is not None and any(
            live.index == worker.worker for live in attempt.live_workers
        )

    def _report(self, error: Exception | None = None) -> None:
        if error is None and not self._kept:
            self._observed.report("stops", None)
        elif error is not None:
            why = getattr(error, "strerror", None) or str(error)
            self._observed.report(
                "stops",
                f"The stop requests of {count(len(self._kept), 'worker')} cannot be written "
                f"({why}). They are retried until the workers have ended. Free space on the disk "
                f"of {self._observed.settings.state}, or see `benchpool doctor`.",
            )
