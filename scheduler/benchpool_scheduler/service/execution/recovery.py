"""Recovery at a start of the service, however the previous process ended.

The runtime finds running workers again. An attempt that was decided and whose workers never started
is reported as lost and queued again. Pending stops are sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS
from benchpool_scheduler.runtime import Notice, Runtime, UnexpectedWorkers, WorkerId
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import endings, hanging, notices
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, StopIntent

log = logging.getLogger(__name__)


async def recover(ledger: Ledger, observed: SchedulerState, runtime: Runtime) -> None:
    """Open the runtime with the expected workers, and resend pending stops."""
    await runtime.open([worker for worker, _ in _expected(ledger)])
    await _end_what_is_over(ledger, runtime)
    for worker, notice in stops_under_way(ledger, observed):
        try:
            await runtime.stop(worker, notice)
        except OSError as error:
            # The service must start. ``Stops`` retries later.
            log.warning("stop request to worker %s failed: %s", worker, error)


async def _end_what_is_over(ledger: Ledger, runtime: Runtime) -> None:
    """End workers whose end is on record. Administrators decide about those without one."""
    if not isinstance(runtime, UnexpectedWorkers):
        return
    if runtime.unexpected_workers():
        await ledger.read_older()  # their records may be old
    over = [it.worker for it in runtime.unexpected_workers() if _is_over(ledger, it.worker)]
    await asyncio.gather(*(runtime.end(worker, notices.over_already()) for worker in over))


def _is_over(ledger: Ledger, worker: WorkerId) -> bool:
    attempt = ledger.attempt(worker.job, worker.attempt)
    known = () if attempt is None else attempt.workers
    return any(it.index == worker.worker and it.ended is not None for it in known)


def stops_under_way(ledger: Ledger, observed: SchedulerState) -> Iterator[tuple[WorkerId, Notice]]:
    """Yield the live workers with a pending stop, each with the remaining notice."""
    for worker, job in _expected(ledger):
        notice = _notice(ledger, observed, job, worker)
        if notice is not None:
            yield worker, notice


def _expected(ledger: Ledger) -> Iterator[tuple[WorkerId, JobRecord]]:
    for job in ledger.live():
        attempt = ledger.attempt(job.id, job.attempt)
        if job.state in HOLDS_GPUS and attempt is not None:
            for worker in attempt.live_workers:
                yield WorkerId(job.id, attempt.attempt, worker.index), job


def _notice(
    ledger: Ledger, observed: SchedulerState, job: JobRecord, worker: WorkerId
) -> Notice | None:
    attempt = ledger.attempt(job.id, worker.attempt)
    if attempt is None:
        return None
    grace_s = observed.now.configuration.policy.grace_s
    stop_request = (
        job.stop_request or hanging.stop_of(job, grace_s) or _sibling_stop(attempt, observed)
    )
    if stop_request is None and any(
        w.index == worker.worker and w.leaving for w in attempt.workers
    ):
        return notices.fewer_workers(grace_s)
    if stop_request is None:
        return None
    left = max(1.0, stop_request.at + stop_request.grace_s - observed.settings.clock.now())
    return notices.notice(stop_request, left)


def _sibling_stop(attempt: AttemptRecord, observed: SchedulerState) -> StopIntent | None:
    culprit = endings.culprit(attempt)
    if culprit is None:
        return None
    grace_s = observed.now.configuration.policy.grace_s
    return notices.sibling_ended(culprit, grace_s, observed.settings.clock.now())
