"""Operations on sweeps with access checks: create, read, stop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from benchpool_scheduler.contract.sweeps import (
    Scalar,
    Sweep,
    SweepPlan,
    SweepPreview,
    SweepRequest,
    SweepsQuery,
    SweepState,
    SweepStop,
    TrialRow,
)
from benchpool_scheduler.errors import (
    BenchpoolError,
    InvalidInput,
    Refused,
    TooMany,
)
from benchpool_scheduler.phrases import count, visible_value
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.lookup import visible_record
from benchpool_scheduler.service.jobs.sweeps import trial_submissions
from benchpool_scheduler.service.jobs.sweeps.sweep_book import SweepBook
from benchpool_scheduler.service.jobs.sweeps.sweep_runner import SweepRunner
from benchpool_scheduler.service.jobs.sweeps.trial_lengths import learned_length
from benchpool_scheduler.service.jobs.sweeps.trial_table import TrialTable
from benchpool_scheduler.service.ledger.job_curves import JobCurves
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.sweep_files import SweepRecord
from benchpool_scheduler.sweeps import words
from benchpool_scheduler.sweeps.costs import cost
from benchpool_scheduler.sweeps.decisions import enough_reason
from benchpool_scheduler.sweeps.proposals import check, propose, size
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialState, ranked

MOST_UNDER_WAY = 20
"""Maximum number of unfinished sweeps per user."""
SHOWN = 5
"""Number of trials shown in a preview."""


class Sweeps:
    """Operations on sweeps; ``sweep`` is an ID, or a unique prefix of at least 4 characters.

    Attributes:
        book: All known sweeps. ``runner``: runs them.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        book: SweepBook,
        table: TrialTable,
        runner: SweepRunner,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._admission = admission
        self._table = table
        self.book = book
        self.runner = runner

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        commands: Commands,
        book: SweepBook,
        curves: JobCurves,
    ) -> Sweeps:
        """Return the operations with a new table and runner."""
        table = TrialTable(ledger, curves)
        runner = SweepRunner(ledger, observed, admission, commands, book, table)
        return cls(ledger, observed, admission, book, table, runner)

    async def begin(self, caller: Caller, asked: SweepRequest) -> Sweep:
        """Accept a sweep; its first trials are jobs when this returns.

        Errors: those of submitting a job; InvalidInput for an invalid plan.
        """
        known = None if asked.key is None else self.book.by_key(caller.name, asked.key)
        if known is not None:
            _check_repeat(known, asked)
            return await self._shown(known)
        sweep = await self._checked(caller, asked)
        mine = [it for it in self.book.under_way() if it.user == caller.name]
        if len(mine) >= MOST_UNDER_WAY:
            raise TooMany(
                f"You have {count(len(mine), 'running sweep')}; the limit is {MOST_UNDER_WAY}. "
                "Wait until one ends, or stop one.",
                code="too-many-sweeps",
                numbers={"sweeps": len(mine), "limit": MOST_UNDER_WAY},
            )
        await self.book.put(sweep)
        try:
            await self.runner.carry_on(sweep.id)
        except BenchpoolError as error:
            begun = self.book.get(sweep.id) or sweep
            if not any(self._ledger.job(trial.job) for trial in begun.trials):
                await self.book.drop(begun)
                raise
            self.runner.record_problem(begun.id, error.message)
        return await self._shown(self.book.get(sweep.id) or sweep)

    async def preview(self, caller: Caller, asked: SweepRequest) -> SweepPreview:
        """Return the trials and cost of a sweep. Errors: those of ``begin``."""
        sweep = await self._checked(caller, asked)
        plan, (at_once, quota) = sweep.plan, self._at_once(sweep)
        given_h, gpus = asked.trial_hours, asked.submission.total_gpus
        learned = None if given_h is not None else learned_length(self._ledger, sweep)
        each_h = given_h if learned is None else learned.hours
        costs = None if each_h is None else cost(plan, each_h, asked.trial_steps, gpus, at_once)
        text = words.forecast(plan, size(plan), costs, at_once, quota)
        if learned is not None:
            text = f"{text} {words.learned_length(plan, *learned)}"
        return SweepPreview(
            text=text,
            trials=size(plan),
            gpu_hours=None if costs is None else costs.gpu_hours,
            hours=None if costs is None else costs.hours,
            trial_hours=each_h,
            first=[visible_value(one) for one in await asyncio.to_thread(_first_values, plan)],
        )

    def _at_once(self, sweep: SweepRecord) -> tuple[int, int | None]:
        """Return how many trials run at a time within the quota, and the quota if it is the
        limit.
        """
        settings = self._observed.now.configuration.project(sweep.project)
        quota = None if settings is None else settings.project.quota
        most = min(sweep.plan.max_concurrent, size(sweep.plan))
        if not quota:  # unlimited, or no quota of its own
            return most, None
        fitting = max(1, quota // sweep.submission.total_gpus)
        return (fitting, quota) if fitting < most else (most, None)

    async def select(self, caller: Caller, query: SweepsQuery) -> list[Sweep]:
        """Return the caller's sweeps, newest first; with ``all`` each one that the caller may
        see.
        """
        found = [
            it
            for it in self.book.all()
            if self._may_see(caller, it) and (query.all or it.user == caller.name)
        ]
        return [await self._shown(it) for it in found[: query.limit]]

    async def show(self, caller: Caller, sweep: str) -> Sweep:
        """Return a sweep with its trials, best first. Errors: NotFound, InvalidInput."""
        return await self._shown(self._find(caller, sweep))

    async def stop(self, caller: Caller, sweep: str, asked: SweepStop) -> Sweep:
        """Start no further trial of a sweep, and end running ones unless they may finish;
        idempotent. A later call can end trials that an earlier one let finish.

        Errors: NotFound, InvalidInput, Unavailable.
        """
        found = self._find(caller, sweep)
        kind = "array" if found.plan.array else "sweep"
        rights.require_reason(caller, found.user, "cancel", asked.reason, kind)
        before = _ended(found.let_finish, found.kept is not None)
        asks_more = found.stopped_by is None or _ended(asked.let_finish, asked.keep_best) > before
        if found.over is None and asks_more:
            kept = await self._best_of(found) if asked.keep_best else None
            finish = asked.let_finish and kept is None
            stopped = replace(found, stopped_by=caller.name, let_finish=finish, kept=kept)
            await self.book.put(stopped)
            await self.runner.carry_on(found.id)
        return await self._shown(self.book.get(found.id) or found)

    async def _best_of(self, sweep: SweepRecord) -> int:
        """Return the number of the best trial. Errors: InvalidInput if none has a value."""
        trials = await self._table.of(sweep, self._observed.settings.clock.now())
        best = ranked(trials, sweep.plan.goal)
        if not best:
            raise InvalidInput(
                f"No trial of {sweep.name} has reported a metric yet, so none is the best.",
                field="keep_best",
            )
        return best[0].number

    async def _checked(self, caller: Caller, asked: SweepRequest) -> SweepRecord:
        """Return the sweep of a request, without trials. Errors: those of ``begin``."""
        check(asked.plan)
        values = await asyncio.to_thread(propose, asked.plan, ())  # may load Optuna
        if values is None:
            raise InvalidInput("The sweep has no trial. Name values.", field="parameters")
        name = asked.name or asked.submission.name or "sweep"
        sweep = SweepRecord(
            id=self._observed.settings.new_id(),
            name=name,
            user=caller.name,
            project=asked.submission.project or "",
            created=self._observed.settings.clock.now(),
            plan=asked.plan,
            submission=asked.submission,
            key=asked.key,
            by_service=caller.kind == "service",
        )
        job = self._admission.checked(caller, trial_submissions.of_record(sweep, 0, values))
        submission = replace(asked.submission, project=job.project)
        return replace(sweep, project=job.project, submission=submission)

    def _find(self, caller: Caller, sweep: str) -> SweepRecord:
        configuration = self._observed.now.configuration
        return visible_record(self.book, configuration, caller, sweep, "sweeps")

    def _may_see(self, caller: Caller, sweep: SweepRecord) -> bool:
        configuration = self._observed.now.configuration
        return rights.may_use_of(caller, sweep.user, sweep.project, configuration)

    async def _shown(self, sweep: SweepRecord) -> Sweep:
        trials = await self._table.of(sweep, self._observed.settings.clock.now())
        enough = enough_reason(sweep.plan, trials, stopped=sweep.stopped_by is not None)
        best = ranked(trials, sweep.plan.goal)
        plan = msgspec.convert(visible_value(msgspec.to_builtins(sweep.plan)), SweepPlan)
        first = [one.number for one in best]
        rest = [one.number for one in trials if one.number not in set(first)]
        state = SweepState.RUNNING if enough is None else SweepState.ENDING
        return Sweep(
            id=sweep.id,
            name=sweep.name,
            user=sweep.user,
            project=sweep.project,
            state=state if sweep.over is None else SweepState.OVER,
            text=words.standing(plan, trials, size(sweep.plan), enough),
            problem=self.runner.problems.get(sweep.id),
            created=datetime.fromtimestamp(sweep.created, UTC),
            ended=None if sweep.over is None else datetime.fromtimestamp(sweep.over, UTC),
            plan=plan,
            size=size(sweep.plan),
            trials=[self._row(sweep, trials[number]) for number in (*first, *rest)],
            best=best[0].number if best else None,
            gpu_hours=round(sum(one.gpu_hours for one in trials), 6),
            url=f"{self._observed.settings.base_url}/sweeps/{sweep.id}",
        )

    def _row(self, sweep: SweepRecord, trial: SweepTrial) -> TrialRow:
        job = self._ledger.job(sweep.trials[trial.number].job)
        return TrialRow(
            number=trial.number,
            job=None if job is None else job.id,
            parameters=visible_value(dict(trial.parameters)),
            state=str(trial.state),
            job_state=None if job is None else str(job.state),
            value=trial.value,
            step=trial.points[-1].step if trial.points else None,
            gpu_hours=round(trial.gpu_hours, 6),
        )


def _first_values(plan: SweepPlan) -> list[dict[str, Scalar]]:
    """Return the values of the first trials, as the sweep chooses them without results."""
    trials: list[SweepTrial] = []
    while len(trials) < SHOWN and (values := propose(plan, trials)) is not None:
        trials.append(SweepTrial(len(trials), values, TrialState.OPEN))
    return [dict(one.parameters) for one in trials]


def _ended(let_finish: bool, keep_best: bool) -> int:
    """Return which running trials a stop ends: 0 none, 1 all but the best, 2 all."""
    return 1 if keep_best else 0 if let_finish else 2


def _check_repeat(known: SweepRecord, asked: SweepRequest) -> None:
    same = known.plan == asked.plan and known.submission == replace(
        asked.submission, project=known.project
    )
    if not same:
        raise Refused(
            f"Sweep {known.id[:8]} ({known.name}) of {known.user} already has the key "
            f"{known.key!r} with other content. Choose another key, or none.",
            code="repeated-key",
            field="key",
        )
