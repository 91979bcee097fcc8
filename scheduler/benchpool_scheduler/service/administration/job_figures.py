"""What became of jobs in a range of time: waits, and preemptions given and taken."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from benchpool_scheduler.accounting.report import JobFigures
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import JobRecord, PreemptionRecord

_Whose = Callable[[JobRecord | None], tuple[str, str] | None]


def figures_of(
    ledger: Ledger, caller: Caller, begin: float, end: float, configuration: Configuration
) -> JobFigures:
    """Return waits and preemptions of the jobs that the caller may see; epoch seconds."""

    def seen(job: JobRecord | None) -> tuple[str, str] | None:
        if job is None or not rights.may_use(caller, job, configuration):
            return None
        return job.user, job.project

    waits: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for job in ledger.jobs():
        if not begin <= (job.started or 0.0) < end or SELF_TEST in job.spec.tags:
            continue
        if job.started is not None and (whose := seen(job)) is not None:
            waits[whose].append(job.started - job.submitted)
    found = JobFigures(waits, Counter(), Counter())
    for pause in ledger.preemptions_since(begin):
        if pause.at < end:
            _count(ledger, found, pause, seen)
    return found


def _count(ledger: Ledger, found: JobFigures, pause: PreemptionRecord, seen: _Whose) -> None:
    claimant = None if pause.claimant is None else ledger.job(pause.claimant)
    if (victim := seen(ledger.job(pause.job))) is not None:
        found.given[victim] += 1
    if (winner := seen(claimant)) is not None:
        found.taken[winner] += 1
