"""State of the trials of a sweep, from their jobs while these exist, else from the sweep's
record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.ledger.job_curves import JobCurves
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import JobRecord
from benchpool_scheduler.store.sweep_files import RungRecord, SweepRecord, TrialRecord
from benchpool_scheduler.sweeps.halving import first_reports
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialPoint, TrialState

ENDS = {
    JobState.SUCCEEDED: TrialState.DONE,
    JobState.FAILED: TrialState.FAILED,
    JobState.CANCELLED: TrialState.CANCELLED,
}


class TrialTable:
    """Reader of trials from ledger and curves."""

    def __init__(self, ledger: Ledger, curves: JobCurves) -> None:
        self._ledger = ledger
        self._curves = curves

    async def of(self, sweep: SweepRecord, now: float) -> list[SweepTrial]:
        """Return the trials of a sweep by number. Errors: OSError."""
        return [
            await self._trial(sweep, number, trial, now)
            for number, trial in enumerate(sweep.trials)
        ]

    async def _trial(
        self, sweep: SweepRecord, number: int, kept: TrialRecord, now: float
    ) -> SweepTrial:
        job, points = self._ledger.job(kept.job), await self._points(kept.job, sweep.plan.metric)
        rungs = tuple(TrialPoint(it.step, _number(it.value), it.at) for it in kept.rungs)
        if kept.ended is not None:
            if not points and kept.value is not None:  # its job and curves were removed
                points = (TrialPoint(kept.step or 0, kept.value, 0.0),)
            state = TrialState(kept.ended)
            return SweepTrial(number, kept.parameters, state, points, kept.gpu_hours, rungs)
        if job is None:
            waits = TrialState.OPEN if sweep.stopped_by is None else TrialState.CANCELLED
            return SweepTrial(number, kept.parameters, waits)
        hours = self._gpu_hours(job, now)
        return SweepTrial(number, kept.parameters, state_of(job), points, hours, rungs)

    async def _points(self, job: str, metric: str | None) -> tuple[TrialPoint, ...]:
        if metric is None:
            return ()
        line = (await self._curves.lines(job)).get(metric, ())
        return tuple(TrialPoint(one.step, _number(one.value), one.at) for one in line)

    def _gpu_hours(self, job: JobRecord, now: float) -> float:
        held = (
            len(worker.gpus) * ((worker.ended or now) - worker.started)
            for attempt in self._ledger.attempts(job.id)
            for worker in attempt.workers
            if worker.started is not None
        )
        return sum(max(0.0, one) for one in held) / 3600


def state_of(job: JobRecord) -> TrialState:
    """Return the state of the trial of this job."""
    if job.live:
        return TrialState.OPEN
    if job.note is not None and job.note.code == ReasonCode.STOPPED_EARLY:
        return TrialState.STOPPED_EARLY
    return ENDS[job.state]


def closed(sweep: SweepRecord, trials: Sequence[SweepTrial]) -> SweepRecord:
    """Return the sweep with the results of the trials that have ended since the last call."""
    return replace(
        sweep,
        trials=tuple(
            kept
            if kept.ended is not None or trial.state is TrialState.OPEN
            else replace(
                kept,
                ended=str(trial.state),
                value=trial.value,
                step=trial.points[-1].step if trial.points else None,
                gpu_hours=trial.gpu_hours,
            )
            for kept, trial in zip(sweep.trials, trials, strict=True)
        ),
    )


def judged(sweep: SweepRecord, trials: Sequence[SweepTrial]) -> SweepRecord:
    """Return the sweep with the rungs at which its trials have been judged."""
    rule = sweep.plan.early_stopping
    if rule is None:
        return sweep
    return replace(
        sweep,
        trials=tuple(
            replace(
                kept,
                rungs=tuple(
                    RungRecord(it.step, it.value if math.isfinite(it.value) else None, it.at)
                    for it in first_reports(trial, rule)
                ),
            )
            for kept, trial in zip(sweep.trials, trials, strict=True)
        ),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value
