"""Execution of committed changes: starts and stops workers, in order for each job.

Jobs do not wait for each other. A failed start is reported as the end of its worker, so that no job
waits for an event that never comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.runtime import EndedBy, Notice, Runtime, WorkerEnded, WorkerEvent, WorkerId
from benchpool_scheduler.service.execution.launching import Launcher, NoAccount
from benchpool_scheduler.service.execution.stops import Stops
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.worker import machine_faults

log = logging.getLogger(__name__)

AT_ONCE = 20
"""Maximum number of actions that are begun before other tasks of the loop run."""


class Actions:
    """Starts and stops workers, in order for each job.

    Args:
        told: Receives the end event of a worker that could not be started.

    Attributes:
        stops: Retries stops that failed.
        before_stop: Waits for actions that precede a notice, and returns the notice.
        serves: Returns the port of a service's replica, by its job ID, or None for other jobs.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        report: Callable[[WorkerEvent], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._report = report
        self._launcher = Launcher(observed)
        self.stops = Stops(ledger, observed, runtime)
        self.before_stop: Callable[[WorkerId, Notice], Awaitable[Notice]] = _at_once
        self.serves: Callable[[str], int | None] = lambda job: None
        self._tails: dict[str, asyncio.Task[None]] = {}
        self._waiting: deque[tuple[str, Callable[[], Coroutine[None, None, None]]]] = deque()
        self._pump: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether actions are queued or running."""
        return bool(self._waiting or self._tails)

    def carry_out(self, work: UnitOfWork) -> None:
        """Queue the starts and stops of a committed unit of work. Returns at once."""
        for worker in work.launches:
            self._waiting.append((worker.job, partial(self._start, worker)))
        for worker, notice in work.stops:
            if worker not in work.stopped:
                self._waiting.append((worker.job, partial(self._stop, worker, notice)))
        self._start_pump()

    def stopping(self, work: UnitOfWork) -> Callable[[str], None]:
        """Return a function that notifies a job's workers as soon as the job's stop is written.

        If thousands of jobs are paused, the first does not wait until the last is written.
        ``carry_out`` handles the remaining stops.
        """
        launched = {worker.job for worker in work.launches}
        early: dict[str, list[tuple[WorkerId, Notice]]] = {}
        for worker, notice in work.stops:
            if worker.job not in launched:
                early.setdefault(worker.job, []).append((worker, notice))

        def written(job: str) -> None:
            for worker, notice in early.pop(job, ()):
                work.stopped.add(worker)
                self._waiting.append((job, partial(self._stop, worker, notice)))
            self._start_pump()

        return written

    def _start_pump(self) -> None:
        if self._waiting and self._pump is None:
            self._pump = asyncio.create_task(self._begin_all())

    async def finish(self) -> None:
        """Wait until all queued actions are carried out."""
        while self.busy:
            if self._pump is not None:
                await self._pump
            await asyncio.gather(*self._tails.values())
            # Since Python 3.12 ``gather`` of finished tasks does not yield to the loop. The
            # callbacks that forget finished tasks run only when it does.
            await asyncio.sleep(0)

    async def _begin_all(self) -> None:
        """Begin the queued actions, a few at a time: a pass may start thousands."""
        try:
            while self._waiting:
                for _ in range(min(AT_ONCE, len(self._waiting))):
                    self._after(*self._waiting.popleft())
                await asyncio.sleep(0)
        finally:
            self._pump = None

    def _after(self, job: str, action: Callable[[], Coroutine[None, None, None]]) -> None:
        before = self._tails.get(job)

        async def in_turn() -> None:
            if before is not None:
                await before
            try:
                await action()
            except Exception:
                log.exception("an action for job %s failed", job)

        task = asyncio.create_task(in_turn())
        self._tails[job] = task
        task.add_done_callback(lambda done: self._forget(job, done))

    def _forget(self, job: str, task: asyncio.Task[None]) -> None:
        if self._tails.get(job) is task:
            del self._tails[job]

    async def _start(self, worker: WorkerId) -> None:
        job = self._ledger.job(worker.job)
        attempt = self._ledger.attempt(worker.job, worker.attempt)
        if job is None or attempt is None:
            return
        try:
            submission = self._ledger.submission(job.id)
            launch = self._launcher.launch(job, attempt, worker.worker, submission)
            await self._runtime.start(replace(launch, serves=self.serves(job.id)))
        except (NoAccount, BenchpoolError) as error:
            self._could_not_start(worker, str(error))
        except Exception as error:
            fault = machine_faults.number_of(error)
            if fault is None:
                log.exception("worker %s could not be started", worker)
                self._could_not_start(worker, f"It could not be started: {error}.")
            else:
                log.warning("worker %s could not be started: %s", worker, error)
                text = machine_faults.sentence(fault)
                self._could_not_start(worker, text, EndedBy.MACHINE_FAULT, fault)

    def _could_not_start(
        self,
        worker: WorkerId,
        text: str,
        by: EndedBy = EndedBy.COULD_NOT_START,
        fault: int | None = None,
    ) -> None:
        now = self._observed.settings.clock.now()
        self._report(WorkerEnded(worker, now, None, by, text, fault))

    async def _stop(self, worker: WorkerId, notice: Notice) -> None:
        await self.stops.send(worker, await self.before_stop(worker, notice))


async def _at_once(worker: WorkerId, notice: Notice) -> Notice:
    return notice
