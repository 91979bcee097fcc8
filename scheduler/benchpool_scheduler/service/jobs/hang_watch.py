"""Background task that detects hanging jobs: it collects activity and acts on findings of the
core.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.core.lifecycle import hangs
from benchpool_scheduler.core.lifecycle.hangs import HangRule, Signs
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.runtime import Leaves, Runtime, WorkerId, WorkerMetrics
from benchpool_scheduler.service.execution.actions import Actions
from benchpool_scheduler.service.jobs import kept_looks
from benchpool_scheduler.service.jobs.peeking import Peeks
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.lifecycle import hanging
from benchpool_scheduler.service.lifecycle.transitions import winding_down
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import AttemptRecord, JobRecord
from benchpool_scheduler.telemetry.live import LASTING_TICKS, LiveUse
from benchpool_scheduler.telemetry.samples import WorkerSample

log = logging.getLogger(__name__)

LOOK_S, LOOKS = 30.0, 10.0
"""Maximum interval between checks, in seconds, and minimum number of checks within the silence that
the site allows.
"""


@dataclass(slots=True)
class _Worker:
    """Activity of a worker: times of the last sample and the last computation, and the end of its
    log.
    """

    measured: float | None = None
    computed: float | None = None
    log_end: int = 0


@dataclass(slots=True)
class _Watched:
    """Activity of a running attempt."""

    attempt: int
    since: float
    reported: float | None = None
    wrote: float | None = None
    gpu: float | None = None
    workers: dict[int, _Worker] = field(default_factory=dict)


class HangWatch:
    """Watcher of the running jobs to which a rule for hangs applies.

    Args:
        live: Latest measurements of GPUs.
        tick_s: Interval between samples, in seconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        live: LiveUse,
        tick_s: float,
        peeks: Peeks,
        actions: Actions,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._live = live
        self._lasting_s = LASTING_TICKS * tick_s
        self._peeks = peeks
        self._actions = actions
        self._watched: dict[str, _Watched] = {}

    def measured(self, samples: Sequence[WorkerSample]) -> None:
        """Record the processor use of workers."""
        for it in samples:
            watched = self._watched.get(it.of.job) if isinstance(it.of, WorkerId) else None
            if watched is None or not isinstance(it.of, WorkerId):
                continue
            if watched.attempt != it.of.attempt:
                continue
            known = watched.workers.setdefault(it.of.worker, _Worker())
            before = watched.since if known.measured is None else known.measured
            # Activity in a long gap between two samples is unknown.
            gap = it.at - it.span_s - before > self._lasting_s
            if gap or it.cpu_s > hangs.QUIET_CORES * it.span_s:
                known.computed = it.at
            known.measured = it.at

    def reported(self, metrics: WorkerMetrics) -> None:
        """Record that a worker reported values."""
        watched = self._watched.get(metrics.worker.job)
        if watched is not None and watched.attempt == metrics.worker.attempt:
            watched.reported = metrics.at

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            after_s = self._observed.now.configuration.hanging.after_s or hangs.USUAL_S
            await asyncio.sleep(min(LOOK_S, after_s / LOOKS))
            try:
                await self.look()
            except Exception:
                log.exception("hang detection failed; retrying")

    async def look(self) -> None:
        """Check all watched jobs, and act on hanging ones."""
        rules = self._observed.now.configuration.hanging
        watched = [
            (job, attempt, rule)
            for job in self._ledger.live()
            if (rule := rules.of_job(job.spec.if_hanging)).after_s is not None
            and (attempt := self._runs(job)) is not None
        ]
        known = {job.id for job, _, _ in watched}
        self._watched = {job: it for job, it in self._watched.items() if job in known}
        for job, attempt, rule in watched:
            await self._look_at(job, attempt, rule)

    def _runs(self, job: JobRecord) -> AttemptRecord | None:
        if (
            job.state is not JobState.RUNNING
            or job.stop_request is not None
            or SELF_TEST in job.spec.tags
        ):
            return None
        attempt = self._ledger.attempt(job.id, job.attempt)
        return None if attempt is None or winding_down(attempt) else attempt

    async def _look_at(self, job: JobRecord, attempt: AttemptRecord, rule: HangRule) -> None:
        now = self._observed.settings.clock.now()
        watched = self._watched.get(job.id)
        if watched is None or watched.attempt != job.attempt:
            watched = self._watched[job.id] = _Watched(job.attempt, now)
        await self._see_logs(watched, attempt, now)
        watched.gpu = newest(watched.gpu, self._gpu_worked(attempt, now))
        signs = self._signs(job, attempt, watched, now)
        since = hangs.silent_since(signs, rule, now)
        if since is not None and not hanging.hangs(job):
            await self._hangs(attempt, since, rule)
        elif since is None and signs.newest is not None and hanging.hangs(job):
            await self._lives(job.id, signs.newest)

    async def _see_logs(self, watched: _Watched, attempt: AttemptRecord, now: float) -> None:
        for worker in attempt.live_workers:
            who = WorkerId(attempt.job, attempt.attempt, worker.index)
            known = watched.workers.setdefault(worker.index, _Worker())
            end = await self._runtime.find_log_offset(who, None)
            if end > known.log_end:
                watched.wrote, known.log_end = now, end

    def _signs(
        self, job: JobRecord, attempt: AttemptRecord, watched: _Watched, now: float
    ) -> Signs:
        progress = job.progress
        reported_at = (
            progress.at if progress is not None and progress.attempt == job.attempt else None
        )
        return Signs(
            watched.since,
            reported=newest(reported_at, watched.reported),
            wrote=watched.wrote,
            computed=self._computed(attempt, watched, now),
            gpu=watched.gpu,
        )

    def _computed(self, attempt: AttemptRecord, watched: _Watched, now: float) -> float | None:
        """Return when a worker last computed, or None unless all of them are measured."""
        seen = [watched.workers.get(it.index, _Worker()) for it in attempt.live_workers]
        if any(it.measured is None or now - it.measured > self._lasting_s for it in seen):
            return None
        return max((it.computed or watched.since for it in seen), default=None)

    def _gpu_worked(self, attempt: AttemptRecord, now: float) -> float | None:
        """Return when a kernel last ran on one of its GPUs, or None if none is measured."""
        latest = self._live.now(now)
        own = [latest[gpu] for it in attempt.live_workers for gpu in it.gpus if gpu in latest]
        measured = [it for it in own if it.sample.activity is not None]
        return max(
            (it.sample.at if it.idle_since is None else it.idle_since for it in measured),
            default=None,
        )

    async def _hangs(self, attempt: AttemptRecord, since: float, rule: HangRule) -> None:
        """Save the stacks of the workers, record the hang, and stop the job if the rule requires
        it.
        """
        await self._keep(attempt)
        configuration = self._observed.now.configuration
        async with self._ledger.lock:
            job = self._ledger.job(attempt.job)
            if job is None or job.attempt != attempt.attempt or self._runs(job) is None:
                return
            work = UnitOfWork(self._ledger)
            now, grace_s = self._observed.settings.clock.now(), configuration.policy.grace_s
            hanging.begin(work, job, since, now, rule.act, configuration.retries, grace_s)
            await self._ledger.commit(*work.changes())
            self._actions.carry_out(work)

    async def _keep(self, attempt: AttemptRecord) -> None:
        try:
            look = kept_looks.bounded(await self._peeks.of_attempt(attempt))
            await asyncio.to_thread(self._peeks.kept.keep, look)
            if isinstance(self._runtime, Leaves):
                text = kept_looks.as_text(look).encode()
                await self._runtime.leave(attempt.job, f"hanging-{attempt.attempt}.txt", text)
        except (OSError, BenchpoolError) as failed:
            log.warning("the stacks of hanging job %s could not be saved: %s", attempt.job, failed)

    async def _lives(self, job_id: str, newest: float) -> None:
        async with self._ledger.lock:
            job = self._ledger.job(job_id)
            if job is None or job.note is None or newest <= float(job.note.numbers["since"] or 0):
                return
            work = UnitOfWork(self._ledger)
            hanging.end(work, job)
            await self._ledger.commit(*work.changes())


def newest(*times: float | None) -> float | None:
    """Return the newest of some times, or None if none is known.

    >>> newest(3.0, None, 5.0), newest(None)
    (5.0, None)
    """
    return max((at for at in times if at is not None), default=None)
