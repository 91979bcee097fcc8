"""Rollout of a pool in virtual time: passes and ends of jobs over the next hours.

The decisions are the core's own. The assumptions are the end of each job (``Quantile``), immediate
leaves of preempted jobs, and progress kept as it would be now.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from benchpool_scheduler.core.cluster.budgets_in_time import BudgetsInTime, HourOutlook
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.sound_plans import sound_on
from benchpool_scheduler.core.effects import apply, paused
from benchpool_scheduler.core.forecast.run_times import HIGH, LIKELY, LOW, Expectation
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Plan,
    Snapshot,
    Start,
)
from benchpool_scheduler.core.plan import decide_on

EXACT_PART = 1 / 4
"""Share of a rollout's passes in which each instant, from the first, has its own pass."""
LEAST_S = 60.0
"""Least elapsed time from which the steps of later passes are computed, in seconds.

Later instants share passes. The steps grow in proportion to the elapsed time, so that the remaining
passes span the horizon.
"""


ROLLOUTS = 5


@dataclass(frozen=True, slots=True)
class Quantile:
    """How soon jobs end in one of ``ROLLOUTS`` rollouts.

    In every rollout some jobs end early and some late, as in reality: among many jobs the first end
    frees GPUs soon, whatever the median run time. Between rollouts all ends shift together, since
    unknown influences, e.g. longer runs this week, are common to all jobs.

    Attributes:
        number: Number of the rollout, from 0. In the middle one the first job ends at its median.
    """

    number: int

    @property
    def of_grace(self) -> float:
        """Return the share of the grace period (R19) that leaving jobs need."""
        return 1.0 if self.number == ROLLOUTS - 1 else 0.0

    def quantile(self, position: int) -> float:
        """Return the quantile of its run time that the job at a position gets.

        >>> [round(Quantile(rollout).quantile(0), 2) for rollout in range(ROLLOUTS)]
        [0.1, 0.3, 0.5, 0.7, 0.9]
        >>> [round(Quantile(rollout).quantile(1), 2) for rollout in range(ROLLOUTS)]
        [0.03, 0.12, 0.25, 0.44, 0.73]
        """
        of_course = _NORMAL.inv_cdf((self.number + 0.5) / ROLLOUTS)
        return _NORMAL.cdf(_NORMAL.inv_cdf(_halving(position + 1)) + of_course)


_NORMAL = NormalDist()


def _halving(number: int) -> float:
    """Return an element of the base-2 van der Corput sequence: 1/2, 1/4, 3/4, 1/8, ..."""
    found, size = 0.0, 0.5
    while number:
        found += size * (number & 1)
        number >>= 1
        size /= 2
    return found


def left_s(
    job: JobFacts, expected: Expectation | None, now_s: float, quantile: float
) -> float | None:
    """Return the remaining run time of a job with GPUs, in seconds, or None if unknown.

    If only its time limit is known, counted from its last start, every time up to it is equally
    likely. The highest tenth stands for the limit itself.
    """
    ran = job.ran_at(now_s)
    limit = None if job.spec.time_limit_s is None else max(0.0, job.spec.time_limit_s - ran)
    if expected is None:
        return None if limit is None else limit * _part(quantile)
    left = max(0.0, _total_s(expected, quantile) - job.done_s - ran)
    return left if limit is None else min(left, limit)


def _part(quantile: float) -> float:
    """Return the used share of the time up to a limit.

    >>> [round(_part(quantile), 2) for quantile in (0.1, 0.5, 0.7, 0.95)]
    [0.1, 0.5, 0.75, 1.0]
    """
    if quantile <= LIKELY:
        return quantile
    return min(1.0, LIKELY + (1 - LIKELY) * (quantile - LIKELY) / (HIGH - LIKELY))


def _total_s(expected: Expectation, quantile: float) -> float:
    """Return a quantile of a run time, interpolated geometrically between the known quantiles.

    >>> known = Expectation(100.0, 200.0, 1800.0)
    >>> [round(_total_s(known, quantile)) for quantile in (0.125, 0.25, 0.5, 0.7, 0.95)]
    [71, 100, 200, 600, 1800]
    """
    low, likely, high = (max(s, 1e-6) for s in (expected.low_s, expected.likely_s, expected.high_s))
    if quantile <= LIKELY:
        return likely * math.pow(low / likely, (LIKELY - quantile) / (LIKELY - LOW))
    return likely * math.pow(high / likely, min(1.0, (quantile - LIKELY) / (HIGH - LIKELY)))


def _gpus(job: JobFacts) -> int:
    return sum(len(worker.gpus) for worker in job.held)


@dataclass(frozen=True, slots=True)
class SimulatedStart:
    """A start in virtual time.

    Attributes:
        at_s: Seconds from the snapshot's instant.
        after: Job whose end freed the GPUs, or None for a start without one.
        ended_s: When that job ended, in seconds from the snapshot's instant.
    """

    at_s: float
    after: JobId | None = None
    ended_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Dependent:
    """A job outside the snapshot that is queued once other jobs have ended.

    Attributes:
        job: The job, as queued.
        after: Unfinished jobs of the snapshot, or other dependents, that it waits for.
    """

    job: JobFacts
    after: frozenset[JobId]


class Rollout:
    """A simulated pool in virtual time.

    Args:
        expected: Expected run times, by job, also of waiting jobs.
        resumes: Leaving jobs that will be queued again. All other leaving jobs end.
        hours: Budgets of GPU-hours on the snapshot's clock, or None.
        dependents: Jobs that are queued once other jobs have ended.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        expected: Mapping[JobId, Expectation],
        quantile: Quantile,
        resumes: Collection[JobId] = (),
        hours: HourOutlook | None = None,
        dependents: Sequence[Dependent] = (),
    ) -> None:
        self.snapshot = snapshot
        self.expected = expected
        self.quantile = quantile
        self.resumes = frozenset(resumes)
        self.simulated: dict[JobId, SimulatedStart] = {}
        self.passes = 0
        self._growth = 0.0
        self._exact = 0
        self._state = ClusterState.of(snapshot)
        self._hours = (
            None
            if hours is None
            else BudgetsInTime(hours, snapshot.projects, snapshot.now_s, snapshot.users)
        )
        self._now_s = snapshot.now_s
        self._wake_s: float | None = None
        self._agenda: list[tuple[float, int, JobId]] = []
        self._ends: dict[JobId, float] = {}
        self._left_now: dict[GpuId, JobId] = {}
        # Jobs with GPUs come first, so that a single running job gets the middle of each fifth.
        in_order = sorted(snapshot.jobs, key=lambda job: not job.held)
        everybody = [*in_order, *(it.job for it in dependents)]
        self._positions = {job.id: position for position, job in enumerate(everybody)}
        self._left_for = {it.job.id: set(it.after) for it in dependents}
        self._dependents = {it.job.id: it.job for it in dependents}
        self._freed_by: dict[JobId, JobId] = {}
        for job in snapshot.jobs:
            self._expect(job)

    def run(
        self,
        wanted: Collection[JobId],
        horizon_s: float,
        most_passes: int,
        should_continue: Callable[[], bool] = lambda: True,
    ) -> None:
        """Simulate until all wanted jobs have started, or until a bound is reached."""
        missing = {job for job in wanted if job in self._state.jobs or job in self._dependents}
        self._exact = int(most_passes * EXACT_PART)
        spans = max(1.0, horizon_s / LEAST_S)
        self._growth = spans ** (1 / max(1, most_passes - self._exact - 1)) - 1
        while missing and self.passes < most_passes and should_continue():
            self._pass()
            missing -= self.simulated.keys()
            if not missing or not self._advance(horizon_s):
                return

    # ------------------------------------------------------------------ agenda

    def _expect(self, job: JobFacts) -> None:
        """Add the end of a job with GPUs to the agenda, if it is known."""
        left: float | None = None
        if job.activity is Activity.TERMINATING:
            left = self.snapshot.policy.grace_s * self.quantile.of_grace
        elif job.activity is Activity.RUNNING:
            quantile = self.quantile.quantile(self._positions[job.id])
            left = left_s(job, self.expected.get(job.id), self._now_s, quantile)
        if left is not None:
            at = self._ends[job.id] = self._now_s + left
            heapq.heappush(self._agenda, (at, self._state.jobs[job.id].age, job.id))

    def _advance(self, horizon_s: float) -> bool:
        """Advance to the next event. Return whether there was one within the horizon.

        The end of a protection is an event too, since an attempt may then succeed (R19).
        """
        while self._agenda and self._ends.get(self._agenda[0][2]) != self._agenda[0][0]:
            heapq.heappop(self._agenda)
        known = [at for at, *_ in self._agenda[:1]]
        known += [] if self._wake_s is None else [self._wake_s]
        if self._hours is not None:
            known.append(self._hours.meter.next_change_s(self._now_s))
        if not known or (soonest := min(known)) > self.snapshot.now_s + horizon_s:
            return False
        gathered = soonest + self._step(soonest - self.snapshot.now_s)
        self._left_now.clear()
        of_time = not self._agenda or soonest != self._agenda[0][0]
        self._now_s = max(self._now_s, gathered if of_time else soonest)
        ends: dict[JobId, float] = {}
        while self._agenda and self._agenda[0][0] <= gathered:
            at, _, job = heapq.heappop(self._agenda)
            if self._ends.get(job) == at:
                ends[job] = at
        if ends:
            # Use the mean: some ends come late by this and some early. With the last end all would
            # be late.
            self._now_s = max(self._now_s, math.fsum(ends.values()) / len(ends))
        for job in ends:
            self._end(job)
        return True

    def _step(self, passed_s: float) -> float:
        return 0.0 if self.passes < self._exact else max(passed_s, LEAST_S) * self._growth

    def _end(self, name: JobId) -> None:
        del self._ends[name]
        job = self._state.jobs[name].job
        self._hold(job, 0)
        self._left_now.update((gpu, name) for worker in job.held for gpu in worker.gpus)
        if job.activity is Activity.TERMINATING and name in self.resumes:
            self._state.put(paused(job, self._now_s, self._lost))
        else:
            self._state.drop(name)
            self._free_dependents(name)

    def _free_dependents(self, ended: JobId) -> None:
        """Queue the dependents that waited only for this job, the oldest first."""
        for name, left in list(self._left_for.items()):
            if ended not in left:
                continue
            left.discard(ended)
            if not left:
                del self._left_for[name]
                self._freed_by[name] = ended
                self._state.put(replace(self._dependents[name], as_of_s=self._now_s, waits_s=0.0))

    # ------------------------------------------------------------------ passes

    def _pass(self) -> None:
        self.passes += 1
        if self._hours is not None:
            self._state = self._hours.look(self._state, self._now_s)
        plan = decide_on(self._state, self._now_s, explain=False)
        plan = sound_on(self._state, plan).plan
        self._wake_s = plan.wake_s
        self._apply(plan)

    def _apply(self, plan: Plan) -> None:
        """Apply the commands. Preempted jobs leave at once."""
        for command in plan.commands:
            before = self._state.jobs[command.job].job
            after = apply(before, command, self._now_s, self._lost, self._state.releasing)
            self._hold(before, _gpus(after))
            if after.held and not before.held and isinstance(command, Start):
                if after.id not in self.simulated:
                    self.simulated[after.id] = self._begin(command)
                self._state.put(after)
                self._expect(after)
                continue
            if not after.held:
                self._ends.pop(after.id, None)
            self._state.put(after)

    def _hold(self, before: JobFacts, gpus: int) -> None:
        """Record that a job holds ``gpus`` GPUs from now on."""
        if self._hours is not None and gpus != _gpus(before):
            self._hours.hold(before, gpus - _gpus(before), self._now_s)

    def _lost(self, job: JobFacts, now_s: float) -> float:
        """Return the cost of a pause for a job: its restart and its unsaved progress, in seconds.

        A job that saves checkpoints loses what it would lose by a pause at the first instant.
        """
        ran, first_s = job.ran_at(now_s), self.snapshot.now_s
        if job.since_checkpoint_s is None or not job.checkpoints:
            lost = ran
        elif job.as_of_s <= first_s:
            lost = min(ran, job.unsaved_at(first_s))
        else:
            lost = 0.0
        return lost + self.snapshot.policy.restart_s

    def _begin(self, command: Start) -> SimulatedStart:
        grace = self.snapshot.policy.grace_s * self.quantile.of_grace if command.after else 0.0
        passed = self._now_s - self.snapshot.now_s
        left = self._left_now
        ended = [left[gpu] for worker in command.workers for gpu in worker.gpus if gpu in left]
        after = max(ended, default=None) or self._freed_by.get(command.job)
        return SimulatedStart(passed + grace, after, passed if after else 0.0)
