"""Jobs that a budget of GPU-hours rejects in a replay; they are submitted again in the next month.

The rejection gives users this remedy (decision 0074).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchpool_scheduler.core.fairness.hour_meter import HourMeter
from benchpool_scheduler.core.fairness.hour_standing import HourBudgets
from benchpool_scheduler.simulation.replay.engine import Costs, Meter, ReplayClock, Run, play
from benchpool_scheduler.simulation.replay.trace import TraceJob


@dataclass(slots=True)
class Refusals:
    """Rejected jobs that wait for their resubmission.

    Attributes:
        again_s: Time of the resubmission.
    """

    runs: list[Run] = field(default_factory=list)
    again_s: float = 0.0

    def add(self, run: Run, again_s: float) -> None:
        """Add a job that was rejected until the next month begins."""
        run.refused = True
        self.runs.append(run)
        self.again_s = again_s

    def due(self, now_s: float) -> list[Run]:
        """Remove and return the jobs that are submitted again now."""
        if now_s < self.again_s:
            return []
        due, self.runs = self.runs, []
        return due


@dataclass(frozen=True, slots=True)
class Accepted:
    """Jobs with the submission times that budgets allow, if GPUs are never short.

    Attributes:
        jobs: By submission; rejected jobs are submitted when their month begins.
        refused: Number of rejected jobs. ``never``: jobs that no month allows; left out.
    """

    jobs: tuple[TraceJob, ...]
    refused: int = 0
    never: int = 0


def accepted(jobs: Sequence[TraceJob], budgets: HourBudgets) -> Accepted:
    """Return the jobs with the times at which budgets allow them, if they wait for nothing else.

    Args:
        jobs: By submission. ``budgets``: by the clock of the jobs.
    """
    ever = [job for job in jobs if budgets.ever_allow(job.project, job.user)]
    never = len(jobs) - len(ever)
    if not ever or not budgets.bounds:
        return Accepted(tuple(ever), never=never)
    runs = [Run.of(index, job, 1) for index, job in enumerate(ever)]
    first_s = ever[0].submit_s
    play(runs, _NothingMissing(budgets, first_s), ReplayClock(Costs(), Meter(first_s, None)))
    runs.sort(key=lambda run: (run.first_start_s, run.index))
    begun = tuple(replace(run.job, submit_s=run.first_start_s or 0.0) for run in runs)
    return Accepted(begun, sum(run.refused for run in runs), never)


class _NothingMissing:
    """Policy that starts every job immediately, unless a budget rejects it."""

    def __init__(self, budgets: HourBudgets, now_s: float) -> None:
        self._meter = HourMeter(budgets, now_s)
        self._refusals = Refusals()
        self._new: list[Run] = []

    @property
    def waiting(self) -> bool:
        """Return whether anything waits."""
        return bool(self._new or self._refusals.runs)

    @property
    def wake_s(self) -> float | None:
        """Return the begin of the next month if a job waits for it."""
        return self._refusals.again_s if self._refusals.runs else None

    def submitted(self, run: Run, now_s: float) -> None:
        """Reject or accept a job."""
        keys = self._meter.budgets.accounts_of(run.job.project, run.job.user)
        if self._meter.standing(now_s).full(keys) is None:
            self._new.append(run)
        else:
            self._refusals.add(run, self._meter.renewed_s)

    def ended(self, run: Run, now_s: float) -> None:
        """Record the end of a job."""
        self._meter.hold(run.job.project, run.job.user, -run.job.gpus, now_s)

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Start the accepted jobs."""
        for run in self._refusals.due(now_s):
            self.submitted(run, now_s)
        new, self._new = self._new, []
        for run in new:
            self._meter.hold(run.job.project, run.job.user, run.job.gpus, now_s)
            clock.start(run, now_s)
