"""State of arrays for the jobs that depend on them, from the sweep book and the ledger."""

from __future__ import annotations

from collections.abc import Callable

from benchpool_scheduler.contract.sweeps import TASK
from benchpool_scheduler.core.lifecycle.arrays import ArrayStanding, ArrayTask
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.jobs.sweeps.sweep_book import SweepBook
from benchpool_scheduler.service.jobs.sweeps.trial_table import ENDS, state_of
from benchpool_scheduler.service.ledger.job_index import PREFIX
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.sweep_files import SweepRecord, TrialRecord
from benchpool_scheduler.sweeps.proposals import size
from benchpool_scheduler.sweeps.trials import TrialState

OUTCOMES = {trial: job for job, trial in ENDS.items()} | {
    TrialState.STOPPED_EARLY: JobState.CANCELLED
}


class ArrayStandings:
    """Reader of the state of arrays.

    Args:
        want_pass: Called when a change may affect a job that waits for an array.
    """

    def __init__(self, ledger: Ledger, book: SweepBook, want_pass: Callable[[], None]) -> None:
        self._ledger = ledger
        self._book = book
        self._want_pass = want_pass
        book.changed.subscribe(self._changed)

    def of(self, array: str) -> ArrayStanding | None:
        """Return the state of an array, or None for an unknown ID or a sweep that is no array."""
        found = self._book.get(array)
        return None if found is None or not found.plan.array else self._standing(found)

    def array_of(self, job: str) -> str | None:
        """Return the sweep or array of a job, or None."""
        place = self._book.of_job(job)
        return None if place is None else place.sweep

    def own(self, user: str, ref: str) -> list[str]:
        """Return a user's sweep or array with this ID, or else all whose ID begins with it."""
        exact = self._book.get(ref)
        named = [exact] if exact else self._book.all() if len(ref) >= PREFIX else ()
        return [it.id for it in named if it.user == user and it.id.startswith(ref)]

    def _changed(self, sweep: str) -> None:
        if sweep in self._ledger.counters.dependents:
            self._want_pass()

    def _standing(self, found: SweepRecord) -> ArrayStanding:
        return ArrayStanding(
            found.id,
            found.name,
            found.user,
            size=size(found.plan),
            at_once=found.plan.max_concurrent,
            tasks=tuple(self._task(found, trial) for trial in found.trials),
            stopped=found.stopped_by is not None or found.over is not None,
        )

    def _task(self, found: SweepRecord, trial: TrialRecord) -> ArrayTask:
        return ArrayTask(int(trial.parameters[TASK]), trial.job, self._outcome(found, trial))

    def _outcome(self, found: SweepRecord, trial: TrialRecord) -> JobState | None:
        if trial.ended is not None:
            return OUTCOMES[TrialState(trial.ended)]
        job = self._ledger.job(trial.job)
        if job is None:  # not accepted yet, or removed
            return None if found.stopped_by is None else JobState.CANCELLED
        state = state_of(job)
        return None if state is TrialState.OPEN else OUTCOMES[state]
