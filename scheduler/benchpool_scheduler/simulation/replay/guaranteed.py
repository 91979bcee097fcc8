"""The product itself: its decision core, told what the service would tell it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
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
from benchpool_scheduler.simulation.replay.trace import TraceJob

HOUR_S = 3600.0


def kind_of(trace: TraceJob) -> tuple[str, str, str, int]:
    """Return what a job is to those who learn run times; a trace knows no names of jobs."""
    return trace.user or trace.project, trace.project, "", trace.gpus


class Guaranteed:
    """The core's cluster state, kept from pass to pass; a run time is never shown to it."""

    def __init__(self, pool: ReplayPool, quotas: Mapping[str, int], policy: Policy) -> None:
        self.policy = policy
        self.state = ClusterState(
            pool.as_nodes(),
            [Project(ProjectName(name), quota=quota) for name, quota in quotas.items()],
            policy,
        )
        self.wake_s: float | None = None
        self._jobs: dict[JobId, JobFacts] = {}
        self._runs: dict[JobId, Run] = {}
        self._run_times = RunTimes()
        self._queued = 0
        self._paused_at: dict[JobId, list[float]] = {}
        self._forgetting: list[tuple[float, JobId]] = []

    @property
    def waiting(self) -> bool:
        """Tell whether anything waits."""
        return self._queued > 0

    def submitted(self, run: Run, now_s: float) -> None:
        """Put the job into the cluster state."""
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
        self._put(job)

    def ended(self, run: Run, now_s: float) -> None:
        """Take it out of the cluster state, and learn how long such jobs run."""
        self._run_times.learn(*kind_of(run.job), run.job.duration_s)
        job = JobId(str(run.index))
        self.state.drop(job)
        del self._jobs[job], self._runs[job]
        self._paused_at.pop(job, None)

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Run a pass and carry out its plan; all of it takes effect at once."""
        self._forget(now_s)
        plan = decide_on(self.state, now_s, explain=False)
        for command in plan.commands:
            if isinstance(command, Preempt):
                self._pause(command, clock, now_s)
            else:
                self._start(command, clock, now_s)
        self.wake_s = plan.wake_s
        if self._forgetting and (self.wake_s is None or self._forgetting[0][0] < self.wake_s):
            self.wake_s = self._forgetting[0][0]

    def _expected_s(self, trace: TraceJob) -> float | None:
        """Return how long it will run, by those of its kind that have ended (R14)."""
        expected = self._run_times.expect(*kind_of(trace), time_limit_s=trace.time_limit_s)
        return None if expected is None else expected.likely_s

    def _put(self, job: JobFacts) -> None:
        self._jobs[job.id] = job
        self.state.put(job)

    def _start(self, command: Start, clock: ReplayClock, now_s: float) -> None:
        clock.start(self._runs[command.job], now_s)
        self._queued -= 1
        self._carry_out(command, 0.0, now_s)

    def _pause(self, command: Preempt, clock: ReplayClock, now_s: float) -> None:
        name = command.job
        lost_s = clock.pause(self._runs[name], now_s)
        self._queued += 1
        at = self._paused_at.setdefault(name, [])
        at.append(now_s)
        heapq.heappush(self._forgetting, (now_s + HOUR_S, name))
        self._carry_out(command, lost_s, now_s)

    def _carry_out(self, command: Command, lost_s: float, now_s: float) -> None:
        job = apply(self._jobs[command.job], command, now_s, lambda *_: lost_s)
        self._put(replace(job, preemptions_last_hour=self._last_hour(command.job, now_s)))

    def _last_hour(self, name: JobId, now_s: float) -> int:
        """Return how often it was paused in the last hour (R19)."""
        at = self._paused_at.get(name)
        if not at:
            return 0
        at[:] = [instant for instant in at if instant > now_s - HOUR_S]
        return len(at)

    def _forget(self, now_s: float) -> None:
        """Tell the core where an hour has passed since a preemption that bound it (R19)."""
        while self._forgetting and self._forgetting[0][0] <= now_s:
            _, name = heapq.heappop(self._forgetting)
            job = self._jobs.get(name)
            if job is None or job.preemptions_last_hour < self.policy.preemptions_per_hour:
                continue
            self._put(replace(job, preemptions_last_hour=self._last_hour(name, now_s)))
