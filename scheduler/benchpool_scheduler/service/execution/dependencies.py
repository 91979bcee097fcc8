"""Dependent jobs: they join the queue when their awaited jobs have ended, or end unrun.

This runs before each pass with the ledger's lock, so that a restart misses no change.
"""

from __future__ import annotations

from msgspec.structs import replace

from benchpool_scheduler.core.lifecycle import dependencies, machine, states
from benchpool_scheduler.core.lifecycle.dependencies import DependencyVerdict
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.lifecycle import awaiting
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.records import (
    JobRecord,
    Note,
)


async def settle(ledger: Ledger, now: float) -> None:
    """Write the outcome of all jobs that wait for other jobs. The caller holds the lock.

    Errors: Unavailable, without any change.
    """
    work = UnitOfWork(ledger)
    # A job that ends unrun may itself be awaited by younger jobs.
    for name in sorted(ledger.counters.gated, key=ledger.job_index.numbers.__getitem__):
        settle_one(work, work.job(name), now)
    await ledger.commit(*work.changes())


def settle_one(work: UnitOfWork, job: JobRecord, now: float) -> None:
    """Record how the awaited jobs of a job have ended, and the consequence."""
    any_end = job.spec.after_any
    awaits = tuple(_known(work, it, any_end=any_end) for it in job.awaits)
    found = dependencies.verdict((it.outcome for it in awaits), any_end=any_end)
    changed = job if awaits == job.awaits else replace(job, awaits=awaits)
    if found is DependencyVerdict.FREE:
        changed = replace(changed, freed=now, queued_since=now)
    elif found is DependencyVerdict.NEVER:
        bad = next(it for it in awaits if it.outcome not in (None, JobState.SUCCEEDED))
        changed = replace(
            changed,
            state=machine.apply(job.state, states.CancelAsked()),
            note=_why_not_run(work, bad),
            ended=now,
            promised=(),
        )
    if changed is not job:
        work.save_job(changed)


def _why_not_run(work: UnitOfWork, bad: Awaited) -> Note:
    if bad.tasks:
        return awaiting.not_run_after_array(bad, work.ledger.arrays.of(bad.job))
    return awaiting.not_run(bad, work.ledger.job(bad.job) and work.job(bad.job))


def _known(work: UnitOfWork, it: Awaited, *, any_end: bool) -> Awaited:
    if it.outcome is not None:
        return it
    if it.tasks:
        array = work.ledger.arrays.of(it.job)
        return it if array is None else replace(it, outcome=array.outcome(any_end=any_end))
    if work.ledger.job(it.job) is None:
        # Older jobs may not be loaded yet.
        gone = work.ledger.whole.is_set()
        return replace(it, outcome=JobState.CANCELLED) if gone else it
    job = work.job(it.job)
    return it if job.live else replace(it, outcome=job.state)
