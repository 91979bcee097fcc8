"""Transfer of the runtime's events into the ledger, in batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from benchpool_scheduler.contract.jobs import TrackerRun
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.runtime import (
    ReportedRun,
    Runtime,
    WorkerEnded,
    WorkerEvent,
    WorkerMetrics,
    WorkerProgress,
    WorkerStarted,
)
from benchpool_scheduler.service.execution.actions import Actions
from benchpool_scheduler.service.execution.drain import Drain
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.lifecycle import transitions
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import Clock
from benchpool_scheduler.store.records import JobProgress
from benchpool_scheduler.worker import tracker_runs

log = logging.getLogger(__name__)

RETRY_S = 1.0
BATCH = 100
"""Maximum number of events in one commit, before other tasks of the loop run."""
SAME_SAVE_S = 1.0
"""Tolerance between reports of the same save, in seconds.

Each report is converted to the service's clock, which may give a slightly later time.
"""


class Watcher:
    """Records worker events in the ledger.

    Args:
        want_pass: Called when GPUs may have become free.

    Attributes:
        reported: Published values that workers of known jobs report.
        newest_xid: Returns the driver's newest error of GPUs since a time, or None.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._want_pass = want_pass
        self._inbox: asyncio.Queue[WorkerEvent] = asyncio.Queue()
        self.actions: Actions | None = None
        self.drain: Drain | None = None
        self.reported: Topic[WorkerMetrics] = Topic()
        self.newest_xid: Callable[[Collection[str], float], int | None] = lambda gpus, since: None

    def enqueue(self, event: WorkerEvent) -> None:
        """Queue an event that did not come from the runtime."""
        self._inbox.put_nowait(event)

    async def listen(self) -> None:
        """Queue the runtime's events until there are no more."""
        async for event in self._runtime.events():
            self._inbox.put_nowait(on_clock(event, self._observed.settings.clock))

    @property
    def idle(self) -> bool:
        """Whether no event is queued."""
        return self._inbox.empty()

    async def run(self) -> None:
        """Record events in the ledger until cancelled. A full disk delays events and loses none."""
        while True:
            batch = [await self._inbox.get()]
            while not self._inbox.empty() and len(batch) < BATCH:
                batch.append(self._inbox.get_nowait())
            await self._take_until_done(batch)

    async def _take_until_done(self, batch: list[WorkerEvent]) -> None:
        while True:
            try:
                await self.take(batch)
            except Unavailable as error:
                self._observed.report("events", str(error))
                await asyncio.sleep(RETRY_S)
            except Exception:
                if len(batch) > 1:
                    # One event that fails must not block the others.
                    for event in batch:
                        await self._take_until_done([event])
                else:
                    log.exception("a worker event could not be processed: %s", batch[0])
                return
            else:
                self._observed.report("events", None)
                return

    async def take(self, batch: list[WorkerEvent]) -> None:
        """Record these events in one commit. Errors: Unavailable, without any change."""
        async with self._ledger.lock:
            # Progress before ends: the last save of a job decides what its end cost.
            for event in batch:
                if isinstance(event, WorkerProgress):
                    self._remember(event)
                elif isinstance(event, WorkerMetrics):
                    self._pass_on(event)
            work = UnitOfWork(self._ledger)
            for event in batch:
                if self.drain is not None:
                    self.drain.see(event)
                self._put(work, event)
            await self._ledger.commit(*work.changes())
            if self.actions is not None:
                self.actions.carry_out(work)
        if any(isinstance(event, WorkerEnded) for event in batch):
            self._want_pass()

    def _put(self, work: UnitOfWork, event: WorkerEvent) -> None:
        match event:
            case WorkerStarted():
                transitions.worker_started(work, event)
            case WorkerEnded():
                configuration = self._observed.now.configuration
                transitions.worker_ended(
                    work,
                    event,
                    configuration.policy.grace_s,
                    self._observed.settings.clock.now(),
                    configuration.retries,
                    self._xid(event) if event.exit_code else None,
                )
            case WorkerProgress() | WorkerMetrics():
                pass

    def _xid(self, event: WorkerEnded) -> int | None:
        """Return the driver's newest error of a worker's GPUs since it started, or None."""
        attempt = self._ledger.attempt(event.worker.job, event.worker.attempt)
        for worker in attempt.workers if attempt is not None else ():
            if worker.index == event.worker.worker and worker.started is not None:
                return self.newest_xid(worker.gpus, worker.started)
        return None

    def _remember(self, event: WorkerProgress) -> None:
        job = self._ledger.job(event.worker.job)
        # The first worker reports for the gang; each worker may save.
        if job is None or job.attempt != event.worker.attempt:
            return
        self._ledger.remember(job.id, _progress(job.progress, event))

    def _pass_on(self, event: WorkerMetrics) -> None:
        job = self._ledger.job(event.worker.job)
        if job is not None and event.worker.attempt <= job.attempt:
            self.reported.publish(event)


def _progress(before: JobProgress | None, event: WorkerProgress) -> JobProgress:
    """Return a job's progress after a worker's report."""
    before = before or JobProgress(event.at)
    attempt = event.worker.attempt
    begins = attempt != before.attempt
    speaks = event.worker.worker == 0 or begins
    known = before.checkpoint_at or 0.0
    newer = (event.checkpoint_at or 0.0) > known + SAME_SAVE_S or _is_further(before, event)
    fraction = event.fraction if speaks else before.fraction
    text = event.text if speaks else before.text
    return JobProgress(
        at=event.at if speaks else before.at,
        fraction=fraction,
        text=None if text is None else text[:500],
        checkpoint_at=max(event.checkpoint_at or 0.0, known) or None,
        saved=fraction if newer else before.saved,
        step=event.checkpoint_step if newer else before.step,
        attempt=attempt,
        before=_most(before.before, before.fraction) if begins else before.before,
        since=_since(None if begins else before.since, event) if speaks else before.since,
        runs=_runs(before.runs, event.runs),
    )


def _runs(
    known: tuple[TrackerRun, ...], reported: tuple[ReportedRun, ...]
) -> tuple[TrackerRun, ...]:
    """Return the tracker runs of all attempts without duplicates, the newest last."""
    kept = [(one.tracker, one.url) for one in known]
    return tuple(TrackerRun(*one) for one in tracker_runs.checked([*kept, *reported]))


def _is_further(before: JobProgress, report: WorkerProgress) -> bool:
    """Return whether the report has a save at a later step than known before."""
    step = report.checkpoint_step
    return step is not None and (before.step is None or step > before.step)


def _most(*fractions: float | None) -> float | None:
    return max((it for it in fractions if it is not None), default=None)


def _since(known: tuple[float, float] | None, report: WorkerProgress) -> tuple[float, float] | None:
    """Return the start of the pace measurement: the first report, or where progress fell."""
    if report.fraction is None or (known is not None and known[1] <= report.fraction):
        return known
    return report.at, report.fraction


def on_clock(event: WorkerEvent, clock: Clock) -> WorkerEvent:
    """Return a worker's event with times of the service's clock.

    Supervisors read their node's clock, which may be set meanwhile or belong to another node.
    """
    now = clock.now()
    at = min(clock.of_wall(event.at), now)
    if isinstance(event, WorkerProgress) and event.checkpoint_at is not None:
        return replace(event, at=at, checkpoint_at=min(clock.of_wall(event.checkpoint_at), now))
    return replace(event, at=at)
