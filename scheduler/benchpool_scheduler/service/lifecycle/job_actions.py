"""Actions that a job allows now, as sent with it in API responses.

A caller who may see a job may take all of them (``access.rights.may_use``), except ending an
administrator's hold. Pages, panels and menus offer these actions.
"""

from __future__ import annotations

from benchpool_scheduler.contract.changes import CHANGEABLE
from benchpool_scheduler.contract.operation import declared
from benchpool_scheduler.contract.operations import JobActions
from benchpool_scheduler.core.lifecycle import machine, states
from benchpool_scheduler.core.lifecycle.states import Intent
from benchpool_scheduler.service.lifecycle import pauses
from benchpool_scheduler.store.records import JobRecord

_OPERATIONS = declared(JobActions)


def actions_of(job: JobRecord, *, lifts: bool = True) -> list[str]:
    """Return the operations that would change something about a job, in the order of the table.

    Operations outside the state machine are offered until the job ends or is cancelled, and longer
    if their form allows it.

    Args:
        lifts: The reader may end an administrator's hold.
    """
    intent = None if job.stop_request is None else job.stop_request.kind
    requests = machine.open_requests(job.state, intent)
    if pauses.is_held(job) and not lifts:
        requests -= {"resume"}
    unfinished = not machine.is_over(job.state) and intent is not Intent.CANCEL
    return [
        one.name
        for one in _OPERATIONS
        if (
            one.name in requests
            if one.name in machine.REQUESTS
            else unfinished or (one.form is not None and one.form.ended)
        )
    ]


def fixed_of(job: JobRecord) -> list[str]:
    """Return the fields that ``change`` can change in general but would refuse now."""
    holds = job.state in states.HOLDS_GPUS
    fixed = {"always": False, "elastic": workers_are_fixed(job), "waiting": holds}
    return [row.name for row in CHANGEABLE if fixed[row.when]]


def workers_are_fixed(job: JobRecord) -> bool:
    """Return whether a job runs with all of its workers or none, so that they cannot change now."""
    return job.spec.min_workers is None and job.state in states.HOLDS_GPUS
