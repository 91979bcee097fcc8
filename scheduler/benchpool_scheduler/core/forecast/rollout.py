"""One way in which the next hours of a pool may go: passes and ends of jobs in virtual time.

The decisions are the core's own. What is assumed beside them: when each job ends (``Quantile``),
that who gives way leaves at once, and that its progress is kept as far as it would be now.
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
"""Of all passes of a course: so many instants, the first ones, have a pass each."""
LEAST_S = 60.0
"""Later instants share passes, in steps that grow in proportion to the time that has passed, which
counts as at least this; the proportion is such that the rest of the passes spans the horizon."""


ROLLOUTS = 5


@dataclass(frozen=True, slots=True)
class Quantile:
    """How soon jobs end in one of ``ROLLOUTS`` courses.

    In every course some end early and some late, as they really do: of many jobs the first end soon
    makes room, whatever the middle of their run times. From course to course all of them shift
    together, since what is not known, e.g. that this week's runs are longer, is common to them.

    Attributes:
        number: Of the course, from 0; in the middle one the first job ends at its median.
    """

    number: int

    @property
    def of_grace(self) -> float:
        """Return the part of the grace period (R19) that those who leave need."""
        return 1.0 if self.number == ROLLOUTS - 1 else 0.0

    def quantile(self, position: int) -> float:
        """Return which quantile of its run time the job at a position gets.

        >>> [round(Quantile(rollout).quantile(0), 2) for rollout in range(ROLLOUTS)]
        [0.1, 0.3, 0.5, 0.7, 0.9]
        >>> [round(Quantile(rollout).quantile(1), 2) for rollout in range(ROLLOUTS)]
        [0.03, 0.12, 0.25, 0.44, 0.73]
        """
        of_course = _NORMAL.inv_cdf((self.number + 0.5) / ROLLOUTS)
        return _NORMAL.cdf(_NORMAL.inv_cdf(_halving(position + 1)) + of_course)


_NORMAL = NormalDist()


def _halving(number: int) -> float:
    """Return the van der Corput sequence to the base 2: 1/2, 1/4, 3/4, 1/8, ..."""
    found, size = 0.0, 0.5
    while number:
        found += size * (number & 1)
        number >>= 1
        size /= 2
    return found


def left_s(
    job: JobFacts, expected: Expectation | None, now_s: float, quantile: float
) -> float | None:
    """Return how long a job with GPUs will go on, in seconds; None where nobody knows.

    Where only its time limit is known, which counts from its last start, any time up to it is as
    likely as any other, and the highest tenth stands for the limit itself.
    """
    ran = job.ran_at(now_s)
    limit = None if job.spec.time_limit_s is None else max(0.0, job.spec.time_limit_s - ran)
    if expected is None:
        return None if limit is None else limit * _part(quantile)
    left = max(0.0, _total_s(expected, quantile) - job.done_s - ran)
    return left if limit is None else min(left, limit)


def _part(quantile: float) -> float:
    """Return which part of the time up to a limit is used.

    >>> [round(_part(quantile), 2) for quantile in (0.1, 0.5, 0.7, 0.95)]
    [0.1, 0.5, 0.75, 1.0]
    """
    if quantile <= LIKELY:
        return quantile
    return min(1.0, LIKELY + (1 - LIKELY) * (quantile - LIKELY) / (HIGH - LIKELY))


def _total_s(expected: Expectation, quantile: float) -> float:
    """Return a quantile of a run time from those that are known: run times differ by factors.

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
        after: The job whose end made room, None when it starts in the first pass.
        ended_s: When that job ended.
    """

    at_s: float
    after: JobId | None = None
    ended_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Dependent:
    """A job that is not in the snapshot: it joins the queue when others have ended.

    Attributes:
        job: Queued. ``after``: those that have not ended, in the snapshot or dependents themselves.
    """

    job: JobFacts
    after: frozenset[JobId]


class Rollout:
    """A pool that runs on by itself.

    Args:
        expected: What is known of run times, by job; waiting jobs too.
        resumes: Jobs that are leaving and will queue again; the others of them end.
        hours: Budgets of GPU-hours, by the snapshot's clock; None where there are none.
        dependents: Jobs that join the queue when others have ended.
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
        # Those with GPUs come first, so that the only one that runs has the middle of each fifth.
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
        go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Go on until all wanted jobs have started, or as far as the bounds allow."""
        missing = {job for job in wanted if job in self._state.jobs or job in self._dependents}
        self._exact = int(most_passes * EXACT_PART)
        spans = max(1.0, horizon_s / LEAST_S)
        self._growth = spans ** (1 / max(1, most_passes - self._exact - 1)) - 1
        while missing and self.passes < most_passes and go_on():
            self._pass()
            missing -= self.simulated.keys()
            if not missing or not self._go_on(horizon_s):
                return

    # ------------------------------------------------------------------ what will happen

    def _expect(self, job: JobFacts) -> None:
        """Put the end of a job with GPUs on the agenda, where it is known."""
        left: float | None = None
        if job.activity is Activity.TERMINATING:
            left = self.snapshot.policy.grace_s * self.quantile.of_grace
        elif job.activity is Activity.RUNNING:
            quantile = self.quantile.quantile(self._positions[job.id])
            left = left_s(job, self.expected.get(job.id), self._now_s, quantile)
        if left is not None:
            at = self._ends[job.id] = self._now_s + left
            heapq.heappush(self._agenda, (at, self._state.jobs[job.id].age, job.id))

    def _go_on(self, horizon_s: float) -> bool:
        """Jump to what happens next; tell whether there was anything within the horizon.

        An attempt may succeed when a protection ends, without any other event (R19).
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
            # Some end late by this and some early; at the last of them all would be late.
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
        """Let those join the queue that waited for this job alone, the oldest first."""
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
        """Let the commands take effect; who gives way has left at once."""
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
        """A job has so many GPUs from now on."""
        if self._hours is not None and gpus != _gpus(before):
            self._hours.hold(before, gpus - _gpus(before), self._now_s)

    def _lost(self, job: JobFacts, now_s: float) -> float:
        """Return what a pause costs a job: its restart, and what it would not have saved.

        What a job that saves loses at a pause is what it would lose by one at the first instant.
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
