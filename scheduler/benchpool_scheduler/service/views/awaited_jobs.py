"""Jobs that wait for other jobs, for readers and forecasts."""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler import contract
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import awaiting
from benchpool_scheduler.service.views.job_progress import progress_of
from benchpool_scheduler.service.views.renderings import Sees
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.records import JobRecord


def reason(ledger: Ledger, record: JobRecord, sees: Sees) -> contract.Reason:
    """Return the reason of a job that waits for other jobs, with their progress.

    Args:
        sees: Returns whether the reader may see a job. Other jobs are not named.
    """

    def look(job: str) -> awaiting.AwaitedNow | None:
        found = ledger.job(job)
        if found is None:
            return None
        progress = progress_of(found)
        return awaiting.AwaitedNow(
            found, None if progress is None else progress.fraction, sees(job)
        )

    any_end = record.spec.after_any
    return awaiting.waits_for(record.awaits, look, ledger.arrays.of, any_end=any_end)


def sees_awaited(ledger: Ledger, it: Awaited, sees: Sees) -> bool:
    """Return whether the reader may see an awaited job or array; an array as its jobs."""
    if not it.tasks:
        return sees(it.job)
    array = ledger.arrays.of(it.job)
    return array is not None and any(sees(task.job) for task in array.tasks)


def listed(ledger: Ledger, record: JobRecord, sees: Sees) -> list[contract.AwaitedJob]:
    """Return a job's awaited jobs. Jobs that the reader may not see have no name."""
    return [
        contract.AwaitedJob(
            it.job,
            visible(it.name) if sees_awaited(ledger, it, sees) else "",
            None if it.outcome is None else contract.State(it.outcome.value),
            it.tasks,
        )
        for it in record.awaits
    ]


def facts_of(ledger: Ledger, record: JobRecord) -> Iterator[object]:
    """Yield the facts shown about awaited jobs; a change gives another object."""
    for it in record.awaits:
        array = ledger.arrays.of(it.job) if it.tasks else None
        yield from (
            (ledger.job(it.job),)
            if array is None
            else (array.stopped, *(ledger.job(task.job) for task in array.tasks))
        )
