"""Tentative changes of a pass: workers given to jobs and taken from jobs.

The journal records every change, so that ``rollback`` undoes it. The changes that are left at the
end are the decisions of the pass. Ledger and capacity change together, so that they always agree.
"""

from __future__ import annotations

from benchpool_scheduler.core.capacity.assignment import Assignment, JobAssignment
from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity, Savepoint
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.fairness.ledger import QuotaLedger
from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.journal import Journal
from benchpool_scheduler.core.model import JobId


class PassChanges:
    """Changes of the present pass. Empty between passes.

    Attributes:
        assigned: Decisions so far, by job.
        given: Units that this pass preempts.
    """

    def __init__(self, capacity: FreeCapacity, ledger: QuotaLedger, journal: Journal) -> None:
        self.capacity = capacity
        self.ledger = ledger
        self.journal = journal
        self.assigned: dict[JobId, JobAssignment] = {}
        self.given: dict[PreemptionUnit, None] = {}

    def savepoint(self) -> Savepoint:
        """Return the present state as a savepoint for ``rollback``."""
        return self.capacity.savepoint()

    def rollback(self, savepoint: Savepoint) -> None:
        """Undo all changes since a savepoint."""
        self.capacity.rollback(savepoint)

    def workers_of(self, info: JobInfo) -> int:
        """Return the number of workers of a job that does not leave, with those that it gets."""
        entry = self.assigned.get(info.job.id)
        new = 0 if entry is None else sum(len(part.workers) for part in entry.parts)
        return len(info.job.held) + new

    def start(self, info: JobInfo, assignment: Assignment) -> None:
        """Record the workers that the job gets."""
        job, homes = info.job.id, self.capacity.homes
        before, has_home = self.assigned.get(job), job in homes
        parts = (assignment,) if before is None else (*before.parts, assignment)
        self.assigned[job] = JobAssignment(info, parts)
        if not has_home:
            homes[job] = assignment.workers[0].node
        amounts = info.request.times(len(assignment.workers))
        self.ledger.add(info, amounts)
        self.journal.record((PassChanges._undo_start, self, info, before, has_home, amounts))

    def _undo_start(
        self, info: JobInfo, before: JobAssignment | None, had_home: bool, amounts: Amounts
    ) -> None:
        """Undo ``start``. It is one journal entry, since a pass starts thousands of jobs."""
        self.ledger.add(info, NOTHING - amounts)
        if not had_home:
            del self.capacity.homes[info.job.id]
        self._put_assigned(info.job.id, before)

    def reassign(self, info: JobInfo, parts: tuple[Assignment, ...]) -> None:
        """Replace the decisions for a job. The ledger is unchanged."""
        job = info.job.id
        self.journal.record((PassChanges._put_assigned, self, job, self.assigned.get(job)))
        self._put_assigned(job, JobAssignment(info, parts) if parts else None)

    def _put_assigned(self, job: JobId, entry: JobAssignment | None) -> None:
        if entry is None:
            del self.assigned[job]
        else:
            self.assigned[job] = entry

    def release(self, unit: PreemptionUnit) -> None:
        """Take a unit from its job. Its GPUs become releasing, or free if this pass started it."""
        info = unit.info
        self.journal.record((PassChanges._book, self, unit, False))
        self._book(unit, True)
        for worker in unit.workers:
            if unit.fresh:
                self.capacity.unassign(info, worker)
            else:
                self.capacity.release(info, worker)

    def hold(self, unit: PreemptionUnit) -> None:
        """Undo ``release``: the unit stays with its job."""
        info = unit.info
        self.journal.record((PassChanges._book, self, unit, True))
        self._book(unit, False)
        for worker in unit.workers:
            if unit.fresh:
                self.capacity.assign(info, worker)
            else:
                self.capacity.hold(info, worker)

    def _book(self, unit: PreemptionUnit, claimed: bool) -> None:
        """Record in the ledger that a unit is released or held."""
        unit.claimed = claimed
        if unit.fresh:
            self.ledger.add(unit.info, NOTHING - unit.amounts if claimed else unit.amounts)
        else:
            self.ledger.release(unit.info, unit.amounts if claimed else NOTHING - unit.amounts)

    def give(self, unit: PreemptionUnit) -> None:
        """Mark a released unit as preempted in this pass."""
        self.journal.record((PassChanges._put_given, self, unit, False))
        self._put_given(unit, True)

    def reprieve(self, unit: PreemptionUnit) -> None:
        """Undo ``give`` and ``release``: the unit stays with its job."""
        self.journal.record((PassChanges._put_given, self, unit, True))
        self._put_given(unit, False)
        self.hold(unit)

    def _put_given(self, unit: PreemptionUnit, gone: bool) -> None:
        unit.gone, unit.claimed = gone, not gone
        if gone:
            self.given[unit] = None
        else:
            del self.given[unit]

    def forget_growth(self, info: JobInfo) -> None:
        """Undo the workers that the pass gave to a running job whose smallest gang leaves (R10)."""
        if (entry := self.assigned.get(info.job.id)) is not None:
            self._forget(info, entry.parts)

    def withdraw(self, unit: PreemptionUnit) -> None:
        """Remove the start of a released unit. A gang goes with all workers added to it (R10)."""
        info = unit.info
        parts = self.assigned[info.job.id].parts
        others = tuple(part for part in parts if part.workers != unit.workers)
        if unit.is_gang:
            self._forget(info, others)
        else:
            self.reassign(info, others)

    def _forget(self, info: JobInfo, parts: tuple[Assignment, ...]) -> None:
        """Remove all decisions for a job, and free what these parts hold."""
        for part in parts:
            amounts = info.request.times(len(part.workers))
            self.journal.record((QuotaLedger.add, self.ledger, info, amounts))
            self.ledger.add(info, NOTHING - amounts)
            for worker in part.workers:
                self.capacity.unassign(info, worker)
        self.reassign(info, ())
        self._leave_home(info.job.id)

    def _leave_home(self, job: JobId) -> None:
        homes = self.capacity.homes
        self.journal.record((dict.__setitem__, homes, job, homes.pop(job)))
