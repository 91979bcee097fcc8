"""Background task that runs sweeps: it starts trials, stops poor ones early, and records
results.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.sweeps import Scalar
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.sweeps import trial_submissions
from benchpool_scheduler.service.jobs.sweeps.sweep_book import SweepBook
from benchpool_scheduler.service.jobs.sweeps.trial_table import TrialTable, closed, judged
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.sweep_files import SweepRecord, TrialRecord
from benchpool_scheduler.sweeps import words
from benchpool_scheduler.sweeps.decisions import next_acts
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialState

log = logging.getLogger(__name__)

AGAIN_S = 30.0
"""Time until a failed step is tried again, in seconds; a change triggers an earlier try."""


class SweepRunner:
    """Background task that processes sweeps in turn, after each change of their trials.

    Attributes:
        problems: Reasons why the next trial could not start, by sweep.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        commands: Commands,
        book: SweepBook,
        table: TrialTable,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._admission = admission
        self._commands = commands
        self._book = book
        self._table = table
        self._news = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self.problems: dict[str, str] = {}

    def see(self, jobs: Collection[str]) -> None:
        """Wake the task if a trial's job has changed or reported a value."""
        if any(self._book.of_job(job) is not None for job in jobs):
            self._news.set()

    async def run(self) -> None:
        """Process all sweeps until cancelled."""
        await self._ledger.whole.wait()
        self._news.set()
        while True:
            wait_s = AGAIN_S if self.problems else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            self._news.clear()
            for sweep in self._book.under_way():
                await self._try(sweep.id)

    async def carry_on(self, sweep: str) -> None:
        """Process a sweep. Errors: those of accepting a trial's job."""
        async with self._one_at_a_time:
            await self._carry_on(sweep)

    def record_problem(self, sweep: str, problem: str) -> None:
        """Record why the next trial of a sweep could not start; it is tried again."""
        self.problems[sweep] = problem
        self._news.set()

    async def _try(self, sweep: str) -> None:
        try:
            await self.carry_on(sweep)
        except BenchpoolError as error:
            self.problems[sweep] = error.message
        except Exception:
            log.exception("sweep %s could not be processed", sweep)
            self.problems[sweep] = "The scheduler could not process it. See the scheduler's log."
        else:
            self.problems.pop(sweep, None)

    async def _carry_on(self, of: str) -> None:
        sweep = self._book.get(of)
        if sweep is None or sweep.over is not None:
            return
        trials = await self._table.of(sweep, self._now)
        kept = closed(sweep, trials)
        if kept != sweep:
            await self._book.put(sweep := kept)
        is_stopped = sweep.stopped_by is not None
        acts = await asyncio.to_thread(next_acts, sweep.plan, trials, stopped=is_stopped)
        for number, why in self._to_stop(sweep, trials, acts.stop):
            await self._stop(sweep.trials[number].job, why)
        if (kept := judged(sweep, trials)) != sweep:  # after the stops, which may fail
            await self._book.put(sweep := kept)
        await self._accept_missing(sweep)
        for values in acts.begin:
            sweep = await self._begin(sweep, values)
        if acts.over:
            await self._book.put(replace(sweep, over=self._now))

    async def _begin(self, sweep: SweepRecord, values: Mapping[str, Scalar]) -> SweepRecord:
        trial = TrialRecord(self._observed.settings.new_id(), dict(values))
        self._admission.checked(
            self._caller(sweep), self._submission(sweep, len(sweep.trials), trial)
        )
        sweep = replace(sweep, trials=(*sweep.trials, trial))
        await self._book.put(sweep)
        await self._accept(sweep, len(sweep.trials) - 1)
        return sweep

    async def _accept_missing(self, sweep: SweepRecord) -> None:
        """Accept the jobs of trials that were recorded but not accepted, e.g. before a restart."""
        for number, trial in enumerate(sweep.trials):
            waits = trial.ended is None and self._ledger.job(trial.job) is None
            if waits and sweep.stopped_by is None:
                await self._accept(sweep, number)

    async def _accept(self, sweep: SweepRecord, number: int) -> None:
        trial = sweep.trials[number]
        submission = self._submission(sweep, number, trial)
        await self._admission.accept_as(self._caller(sweep), submission, trial.job)

    @staticmethod
    def _to_stop(
        sweep: SweepRecord, trials: Sequence[SweepTrial], early: Sequence[int]
    ) -> Iterator[tuple[int, str]]:
        """Yield the trials to stop, each with the reason."""
        if sweep.stopped_by is not None and not sweep.let_finish:
            for trial in trials:
                if trial.state is TrialState.OPEN and trial.number != sweep.kept:
                    yield trial.number, f"{sweep.stopped_by} stopped sweep {sweep.name}."
            return
        for number in early:
            yield number, words.why_stopped(sweep.plan, trials, number, sweep.name)

    async def _stop(self, job_id: str, why: str) -> None:
        job = self._ledger.job(job_id)
        if (
            job is not None
            and job.live
            and not (job.stop_request is not None and job.stop_request.early)
        ):
            await self._commands.stop_early(job.id, why)

    @staticmethod
    def _submission(sweep: SweepRecord, number: int, trial: TrialRecord) -> JobSubmission:
        return trial_submissions.of_record(sweep, number, trial.parameters)

    def _caller(self, sweep: SweepRecord) -> Caller:
        """Return the sweep's owner with the present rights."""
        if sweep.by_service:
            return Caller(sweep.user, kind="service")
        known = self._observed.now.hub_user(sweep.user)
        if known is None:
            return Caller(sweep.user)
        return Caller(sweep.user, admin=known.admin, groups=frozenset(known.groups))

    @property
    def _now(self) -> float:
        return self._observed.settings.clock.now()
