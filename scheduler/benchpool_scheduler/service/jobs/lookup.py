"""Finds the job that a caller means."""

from __future__ import annotations

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.job_index import PREFIX
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import JobRecord


def visible_job(
    ledger: Ledger, configuration: Configuration, caller: Caller, job: str
) -> JobRecord:
    """Return a job that the caller may see, by its id or by a prefix that no other job has.

    Errors: NotFound; InvalidInput ``ambiguous-id`` when several visible jobs begin so.
    """
    exact = ledger.job(job)
    if exact is not None:
        matching = [exact]
    else:
        matching = ledger.job_index.beginning(job) if len(job) >= PREFIX else []
    found = [it for it in matching if rights.may_use(caller, it, configuration)]
    if len(found) > 1:
        raise InvalidInput(
            f"{len(found)} jobs begin with {job!r}; write more signs of the id.",
            code="ambiguous-id",
            field="id",
            numbers={"jobs": len(found)},
        )
    if not found:
        raise rights.no_job(job)
    return found[0]
