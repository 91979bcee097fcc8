"""Accuracy of the start estimates over a recorded workload (R22).

The core replays the trace. At intervals every waiting job gets the estimate that the service would
give it. Run times come from jobs that have ended by then; ranges come from the results of earlier
estimates. Each estimate is counted before the calibration learns from it. The result includes the
error from later submissions, which the forecast cannot know.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchpool_scheduler.core.forecast.calibration import (
    AGAIN_S,
    Calibration,
    FollowedEstimates,
)
from benchpool_scheduler.core.forecast.forecast import forecast
from benchpool_scheduler.core.model import (
    JobId,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    Start,
)
from benchpool_scheduler.simulation.replay.engine import ReplayClock, Run
from benchpool_scheduler.simulation.replay.guaranteed import Guaranteed, kind_of
from benchpool_scheduler.simulation.replay.pools import ReplayPool

EVERY_S = 1800.0
"""Interval between two rounds of estimates for waiting jobs, in seconds of the trace."""
PASSES = 64
"""Maximum passes of one forecast; fewer than in the service, since a replay makes thousands."""


class Estimating(Guaranteed):
    """The guaranteed policy, with an estimate for its waiting jobs every half hour.

    Args:
        calibration: Learns the results of the estimates.
        judged_from_s: Earlier estimates only train the calibration; they are not counted.
    """

    def __init__(
        self,
        pool: ReplayPool,
        quotas: Mapping[str, int],
        policy: Policy,
        calibration: Calibration,
        judged_from_s: float = 0.0,
    ) -> None:
        super().__init__(pool, quotas, policy)
        self._calibration = calibration
        self._followed = FollowedEstimates(calibration)
        self._projects = tuple(Project(ProjectName(n), quota=q) for n, q in quotas.items())
        self._next_s = 0.0
        self._judged_from_s = judged_from_s
        calibration.recording = judged_from_s <= 0
        self._asked: dict[JobId, float] = {}

    def ended(self, run: Run, now_s: float) -> None:
        """Record the end, and forget the estimate times of the job."""
        self._asked.pop(JobId(str(run.index)), None)
        super().ended(run, now_s)

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Decide, and make estimates when they are due."""
        super().decide(clock, now_s)
        if self.waiting and now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            self._ask(now_s)

    def _start(self, command: Start, clock: ReplayClock, now_s: float) -> None:
        super()._start(command, clock, now_s)
        self._followed.started(command.job, now_s)

    def _ask(self, now_s: float) -> None:
        if not self._calibration.recording and now_s >= self._judged_from_s:
            self._calibration.recording = True
            self._followed = FollowedEstimates(self._calibration)
            self._asked.clear()
        due = [
            name
            for name, info in self.state.jobs.items()
            if not info.job.held and self._asked.get(name, 0.0) <= now_s
        ]
        if not due:
            return
        jobs = tuple(info.job for info in self.state.jobs.values())
        pool = Snapshot(self.state.nodes, self._projects, jobs, self.policy, now_s=now_s)
        expected = {}
        for name, run in self._runs.items():
            job = self.state.jobs[name].job
            ran_s = job.done_s + (job.ran_at(now_s) if job.held else 0.0)
            found = self._run_times.expect(*kind_of(run.job), ran_s)
            if found is not None:
                expected[name] = found
        estimates = forecast(pool, expected, due, most_passes=PASSES)
        for name in due:
            prediction = None
            if name in estimates:
                prediction = self._calibration.range_of(estimates[name], now_s)
            if prediction is not None:
                self._followed.follow(name, prediction)
            self._asked[name] = now_s + max(AGAIN_S, prediction.latest_s / 2 if prediction else 0.0)
