"""The product's own decision core as the policy of a replay, with the facts of the service.

With budgets of GPU-hours, a job whose hard budget is used up is rejected as in the service. It is
submitted again when the next month begins, which is the remedy that the rejection names.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.cluster.budgets_in_time import BudgetsInTime
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.sound_plans import sound_on
from benchpool_scheduler.core.effects import apply
from benchpool_scheduler.core.forecast.run_times import RunTimes
from benchpool_scheduler.core.model import (
    Command,
    JobFacts,
    JobId,
    Policy,
    Preempt,
    Project,
    ProjectName,
    Start,
)
from benchpool_scheduler.core.plan import decide_on
from benchpool_scheduler.simulation.documents import whole_seconds
from benchpool_scheduler.simulation.replay.engine import ReplayClock, Run
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.replay.refusals import Refusals
from benchpool_scheduler.simulation.replay.trace import TraceJob

HOUR_S, DAY_S = 3600.0, 86_400.0


def kind_of(trace: TraceJob) -> tuple[str, str, str, int]:
    """Return the kind of a job for learning run times; a trace has no job names."""
    return trace.user or trace.project, trace.project, "", trace.gpus


class Guaranteed:
    """Policy of the core: its cluster state is kept between passes and never contains a run time.

    Attributes:
        hours: Budgets of GPU-hours, None for none.
    """

    def __init__(self, pool: ReplayPool, quotas: Mapping[str, int], policy: Policy) -> None:
        self.policy = policy
        self.state = ClusterState(
            pool.as_nodes(),
            [Project(ProjectName(name), quota=quota) for name, quota in quotas.items()],
            policy,
        )
        self.wake_s: float | None = None
        self.hours: BudgetsInTime | None = None
        self._refusals = Refusals()
        self._runs: dict[JobId, Run] = {}
        self._run_times = RunTimes()
        self._queued = 0
        self._paused_at: dict[JobId, list[float]] = {}
        self._forgetting: list[tuple[float, JobId]] = []

    @property
    def waiting(self) -> bool:
        """Return whether anything waits."""
        return self._queued > 0 or bool(self._refusals.runs)

    def submitted(self, run: Run, now_s: float) -> None:
        """Add the job to the cluster state; a job that a budget rejects is submitted next month."""
        if self.hours is not None and self.hours.refuses(run.job.project, run.job.user, now_s):
            self._refusals.add(run, self.hours.meter.renewed_s)
            return
        trace = run.job
        job = JobFacts(
            id=JobId(str(run.index)),
            project=ProjectName(trace.project),
            spec=JobSpec(
                gpus=trace.gpus // run.workers,
                workers=run.workers,
                min_workers=run.workers,
                priority=50 if trace.priority is None else trace.priority,
                time_limit_s=whole_seconds(trace.time_limit_s),
            ),
            user=trace.user,
            as_of_s=now_s,
            expected_run_s=self._expected_s(trace),
        )
        self._runs[job.id] = run
        self._queued += 1
        if self.hours is None:
            self.state.put(job)
        else:
            self.hours.put(self.state, job, now_s)

    def ended(self, run: Run, now_s: float) -> None:
        """Remove the job from the cluster state, and learn its run time."""
        self._run_times.learn(*kind_of(run.job), run.job.duration_s)
        job = JobId(str(run.index))
        self._hold(job, -run.job.gpus, now_s)
        self.state.drop(job)
        del self._runs[job]
        self._paused_at.pop(job, None)

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Run a pass and carry out its plan; all of it takes effect immediately."""
        self._forget(now_s)
        self._look_at_hours(now_s)
        plan = decide_on(self.state, now_s, explain=False)
        if broken := sound_on(self.state, plan).broken:
            raise RuntimeError(
                f"the plan of the pass at {now_s:g} s would violate {broken[0]}; report this bug "
                "of benchpool with the trace"
            )
        for command in plan.commands:
            if isinstance(command, Preempt):
                self._pause(command, clock, now_s)
            else:
                self._start(command, clock, now_s)
        self.wake_s = plan.wake_s
        others = [self._forgetting[0][0]] if self._forgetting else []
        if self.hours is not None:
            others.append(self.hours.meter.next_change_s(now_s))
        self.wake_s = min([*others, *(() if self.wake_s is None else (self.wake_s,))], default=None)

    def _look_at_hours(self, now_s: float) -> None:
        """Update the projects beyond a budget; submit rejected jobs again when a month begins."""
        if self.hours is None:
            return
        for run in self._refusals.due(now_s):
            self.submitted(run, now_s)
        self.state = self.hours.look(self.state, now_s)

    def _hold(self, job: JobId, gpus: int, now_s: float) -> None:
        if self.hours is not None:
            self.hours.hold(self.state.jobs[job].job, gpus, now_s)

    def _expected_s(self, trace: TraceJob) -> float | None:
        """Return the expected run time, from ended jobs of its kind (R14)."""
        expected = self._run_times.expect(*kind_of(trace), time_limit_s=trace.time_limit_s)
        return None if expected is None else expected.likely_s

    def _start(self, command: Start, clock: ReplayClock, now_s: float) -> None:
        clock.start(self._runs[command.job], now_s)
        self._hold(command.job, self._runs[command.job].job.gpus, now_s)
        self._queued -= 1
        self._carry_out(command, 0.0, now_s)

    def _pause(self, command: Preempt, clock: ReplayClock, now_s: float) -> None:
        name = command.job
        claimant = None if command.claimant is None else self._runs[command.claimant].index
        lost_s = clock.pause(self._runs[name], now_s, claimant)
        self._hold(name, -self._runs[name].job.gpus, now_s)
        self._queued += 1
        at = self._paused_at.setdefault(name, [])
        at.append(now_s)
        for counted_s in (HOUR_S, DAY_S):
            heapq.heappush(self._forgetting, (now_s + counted_s, name))
        self._carry_out(command, lost_s, now_s)

    def _carry_out(self, command: Command, lost_s: float, now_s: float) -> None:
        before = self.state.jobs[command.job].job
        job = apply(before, command, now_s, lambda *_: lost_s)
        self.state.put(self._counted(job, now_s))

    def _counted(self, job: JobFacts, now_s: float) -> JobFacts:
        """Return the job with its number of pauses in the last hour and day (R19)."""
        at = self._paused_at.get(job.id, [])
        at[:] = [instant for instant in at if instant > now_s - DAY_S]
        return replace(
            job,
            preemptions_last_hour=sum(instant > now_s - HOUR_S for instant in at),
            preemptions_last_day=len(at),
        )

    def _forget(self, now_s: float) -> None:
        """Update the core where a preemption no longer counts for a bound (R19)."""
        while self._forgetting and self._forgetting[0][0] <= now_s:
            _, name = heapq.heappop(self._forgetting)
            info = self.state.jobs.get(name)
            job = None if info is None else info.job
            if job is not None and self.policy.has_paid_enough(job):
                self.state.put(self._counted(job, now_s))
