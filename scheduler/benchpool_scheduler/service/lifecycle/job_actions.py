"""What may be done to a job now: the answer that travels with it on the wire.

Whoever may see a job may do all of it (``access.rights.may_use``), but end what an administrator
holds. Pages, panels and menus offer what stands here.
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

    Those that are no wish of the state machine are offered as long as the job is to go on, and
    longer where their form says so.

    Args:
        lifts: The reader may end what an administrator holds.
    """
    intent = None if job.wish is None else job.wish.kind
    wishes = machine.open_wishes(job.state, intent)
    if pauses.is_held(job) and not lifts:
        wishes -= {"resume"}
    goes_on = not machine.is_over(job.state) and intent is not Intent.CANCEL
    return [
        one.name
        for one in _OPERATIONS
        if (
            one.name in wishes
            if one.name in machine.WISHES
            else goes_on or (one.form is not None and one.form.ended)
        )
    ]


def fixed_of(job: JobRecord) -> list[str]:
    """Return what ``change`` would be refused now, of what it can change at all."""
    holds = job.state in states.HOLDS_GPUS
    fixed = {"always": False, "elastic": workers_are_fixed(job), "waiting": holds}
    return [row.name for row in CHANGEABLE if fixed[row.when]]


def workers_are_fixed(job: JobRecord) -> bool:
    """Tell whether a job runs with all of its workers or none: they cannot be others now."""
    return job.spec.min_workers is None and job.state in states.HOLDS_GPUS
