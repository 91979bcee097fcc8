"""How true the estimates of starts are, on a recorded workload (R22).

``python benchmarks/estimates.py TRACE [--gpus N] [--window A:B] [--every H]``: the trace is
replayed with the core; run times are learned only from jobs that have ended by then. Every H hours
of the trace each job that waits and was not asked about before gets its estimate, as the service
would give it. At the end the estimates are held against the first starts. The forecast cannot know
what will be submitted later; what is measured includes that.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from tables import machine

from benchpool_scheduler.core.forecast.forecast import Estimate, forecast
from benchpool_scheduler.core.forecast.run_times import RunTimes
from benchpool_scheduler.core.model import JobId, Policy, Project, ProjectName, Snapshot
from benchpool_scheduler.simulation.replay.engine import Costs, Meter, ReplayClock, Run, play
from benchpool_scheduler.simulation.replay.guaranteed import Guaranteed
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.replay.report import ReplayOptions, prepared

HOUR_S = 3600.0
PASSES = 256


class Asking(Guaranteed):
    """The guaranteed policy, asked every few hours when its waiting jobs will start."""

    def __init__(self, pool: ReplayPool, quotas: Mapping[str, int], every_s: float) -> None:
        super().__init__(pool, quotas, Policy())
        self.projects = tuple(Project(ProjectName(n), quota=q) for n, q in quotas.items())
        self.known = RunTimes()
        self.every_s = every_s
        self.next_s = 0.0
        self.asked: dict[Run, tuple[float, Estimate | None]] = {}
        self.took_s: list[float] = []

    def ended(self, run: Run, now_s: float) -> None:
        """Learn how long the job ran."""
        trace = run.job
        self.known.learn(trace.user or "", trace.project, "", trace.gpus, trace.duration_s)
        super().ended(run, now_s)

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Decide, and ask now and then."""
        super().decide(clock, now_s)
        if self.waiting and now_s >= self.next_s:
            self.next_s = now_s + self.every_s
            self._ask(now_s)

    def _ask(self, now_s: float) -> None:
        jobs = self._jobs
        new = [
            job
            for job, run in self._runs.items()
            if run.first_start_s is None and run not in self.asked
        ]
        if not new:
            return
        begin = time.perf_counter()
        pool = Snapshot(
            self.state.nodes, self.projects, tuple(jobs.values()), self.policy, now_s=now_s
        )
        expected = {}
        for job, run in self._runs.items():
            held = jobs[job].held
            ran_s = jobs[job].done_s + (jobs[job].ran_at(now_s) if held else 0.0)
            trace = run.job
            found = self.known.expect(trace.user or "", trace.project, "", trace.gpus, ran_s)
            if found is not None:
                expected[job] = found
        estimates = forecast(pool, expected, [JobId(job) for job in new], most_passes=PASSES)
        self.took_s.append(time.perf_counter() - begin)
        self.asked.update({self._runs[job]: (now_s, estimates.get(job)) for job in new})


def main() -> None:
    """Replay, ask, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--gpus", type=int, default=400)
    parser.add_argument("--window", default="21:35")
    parser.add_argument("--min-jobs", type=int, default=51)
    parser.add_argument("--every", type=float, default=4.0, help="hours between questions")
    given = parser.parse_args()
    ready = prepared(
        ReplayOptions(given.trace, given.gpus, window=given.window, min_jobs=given.min_jobs)
    )
    runs = [Run.of(i, job, ready.pool.workers_of(job)) for i, job in enumerate(ready.jobs)]
    decider = Asking(ready.pool, ready.quotas, given.every * HOUR_S)
    play(runs, decider, ReplayClock(Costs(), Meter(ready.jobs[0].submit_s, None)))
    report(decider)


def report(decider: Asking) -> None:
    """Print how the estimates compare with what came."""
    real = {run: (run.first_start_s or 0.0) - at for run, (at, _) in decider.asked.items()}
    said = {run: it for run, (_, it) in decider.asked.items() if it is not None}
    ranges = {
        run: (it.earliest_s, it.latest_s)
        for run, it in said.items()
        if it.earliest_s is not None and it.latest_s is not None
    }
    likely = {run: it.likely_s for run, it in said.items() if it.likely_s is not None}
    inside = [low - 60 <= real[run] <= high + 60 for run, (low, high) in ranges.items()]
    by_then = [real[run] <= high + 60 for run, (_, high) in ranges.items()]
    errors = [abs(real[run] - s) for run, s in likely.items()]
    print(f"{machine()}\n\n| what | figure |\n|---|---|")
    rows = (
        ("waiting jobs asked about", f"{len(real)}"),
        (
            "they started after, median and mean",
            f"{_minutes(statistics.median(real.values()))}, "
            f"{_minutes(statistics.fmean(real.values()))}",
        ),
        (
            "with an estimate; with a whole range",
            f"{_part(len(said), len(real))}, {_part(len(ranges), len(real))}",
        ),
        ("started within the range (a minute more on both sides)", _part(sum(inside), len(inside))),
        ("started by its late bound", _part(sum(by_then), len(by_then))),
        ("distance of the likely start, median", _minutes(statistics.median(errors))),
        (
            "time for a forecast, median and most",
            f"{statistics.median(decider.took_s):.2f} s, {max(decider.took_s):.2f} s",
        ),
    )
    for what, figure in rows:
        print(f"| {what} | {figure} |")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _part(some: int, every: int) -> str:
    return f"{some / max(1, every):.0%}"


if __name__ == "__main__":
    main()
