"""Waits of jobs, and preemptions of and for them, in a range of time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from benchpool_scheduler.accounting.report import JobFigures
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.past_jobs import PastJob
from benchpool_scheduler.store.records import JobRecord, PreemptionRecord

_Whose = Callable[[JobRecord | None], tuple[str, str] | None]


def figures_of(
    ledger: Ledger,
    caller: Caller,
    begin: float,
    end: float,
    configuration: Configuration,
    removed: Iterable[PastJob] = (),
) -> JobFigures:
    """Return waits and preemptions of the jobs that the caller may see; epoch seconds.

    Args:
        removed: Summaries of jobs whose records were removed and that ended in the range or
            later.
    """
    gone = {job.id: job for job in removed if ledger.job(job.id) is None}

    def seen(job: JobRecord | None) -> tuple[str, str] | None:
        if job is None or not rights.may_use(caller, job, configuration):
            return None
        return job.user, job.project

    def seen_gone(user: str, project: str) -> bool:
        return rights.may_see_use(caller, user, project, configuration)

    waits: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for job in ledger.jobs():
        if not begin <= (job.started or 0.0) < end or SELF_TEST in job.spec.tags:
            continue
        if job.started is not None and (whose := seen(job)) is not None:
            waits[whose].append(job.started - job.in_line_since)
    found = JobFigures(waits, Counter(), Counter())
    for pause in ledger.preemptions_since(begin):
        if pause.at < end:
            _count(ledger, found, pause, seen)
            claimant = gone.get(pause.claimant or "")
            if claimant is not None and seen_gone(claimant.user, claimant.project):
                found.taken[claimant.user, claimant.project] += 1
    for past in gone.values():
        _count_gone(past, found, waits, (begin, end), seen_gone)
    return found


def _count_gone(
    job: PastJob,
    found: JobFigures,
    waits: defaultdict[tuple[str, str], list[float]],
    span: tuple[float, float],
    seen: Callable[[str, str], bool],
) -> None:
    """Count a job whose record was removed, in the same way as one with a record."""
    begin, end = span
    sees, began = seen(job.user, job.project), job.began
    if sees and began is not None and begin <= began < end:
        waits[job.user, job.project].append(max(0.0, began - job.submitted))
    for paid in job.paid:
        if not begin <= paid.at < end:
            continue
        if sees:
            found.given[job.user, job.project] += 1
        if paid.user is not None and paid.project is not None and seen(paid.user, paid.project):
            found.taken[paid.user, paid.project] += 1


def _count(ledger: Ledger, found: JobFigures, pause: PreemptionRecord, seen: _Whose) -> None:
    claimant = None if pause.claimant is None else ledger.job(pause.claimant)
    if (victim := seen(ledger.job(pause.job))) is not None:
        found.given[victim] += 1
    if (winner := seen(claimant)) is not None:
        found.taken[winner] += 1
