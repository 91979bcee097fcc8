"""The virtual clock of a replay: submissions, ends, pauses and their costs.

Events of one instant form one batch: first the ends, then the submissions, then one pass. A pass
runs when a job waits, and when a protection expires that could have delayed a preemption (R19).
Every command takes effect immediately, so the grace period costs nothing here; ``Costs`` defines
the cost of a pause.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchpool_scheduler.simulation.replay.trace import TraceJob


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of one preemption for its job, in seconds of its run time (formats, section 2).

    Attributes:
        restart_s: Time from a resume until the job makes progress again.
        lost_progress_s: Mean progress since the last checkpoint; at most the progress made.
    """

    restart_s: float = 60.0
    lost_progress_s: float = 0.0


@dataclass(slots=True, eq=False)
class Run:
    """One job in the replay.

    Attributes:
        left_s: Remaining run time. ``started_s``: its present start, None while it holds nothing.
            ``working_s``: the time from which it makes progress.
        attempt: Number of its starts.
        lost_gpu_s: GPU-seconds held without lasting progress: restarts and lost progress.
        refused: A budget of GPU-hours rejected its submission, and it was submitted again.
        held: Begin and end of each span in which it held its GPUs; all but the last ended with a
            pause.
        made_way_for: For each pause the index of the claimant; None without a single claimant.
    """

    index: int
    job: TraceJob
    workers: int
    left_s: float
    started_s: float | None = None
    working_s: float = 0.0
    first_start_s: float | None = None
    end_s: float = math.nan
    attempt: int = 0
    preemptions: int = 0
    lost_gpu_s: float = 0.0
    refused: bool = False
    held: list[tuple[float, float]] = field(default_factory=list)
    made_way_for: list[int | None] = field(default_factory=list)

    @classmethod
    def of(cls, index: int, job: TraceJob, workers: int) -> Run:
        """Return a job that has not run yet."""
        return cls(index, job, workers, job.duration_s)

    @property
    def wait_s(self) -> float:
        """Return all time without progress (formats, section 2)."""
        return max(0.0, self.end_s - self.job.submit_s - self.job.duration_s)

    @property
    def jct_s(self) -> float:
        """Return the completion time, from submission to end."""
        return self.end_s - self.job.submit_s


class Decider(Protocol):
    """Interface of a policy, which learns a job's run time only by ``ended``."""

    @property
    def waiting(self) -> bool:
        """Return whether anything waits."""

    @property
    def wake_s(self) -> float | None:
        """Return the time when the decision may change without an event."""

    def submitted(self, run: Run, now_s: float) -> None:
        """Record a new job."""

    def ended(self, run: Run, now_s: float) -> None:
        """Record that a running job has finished and its GPUs are free."""

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Start and pause jobs through the clock."""


@dataclass(slots=True)
class Meter:
    """GPU-seconds held, and lost, between two instants.

    Attributes:
        until_s: None for no end.
    """

    from_s: float
    until_s: float | None
    held: int = 0
    held_gpu_s: float = 0.0
    lost_gpu_s: float = 0.0
    _at_s: float = 0.0

    def change(self, gpus: int, now_s: float) -> None:
        """Change the number of held GPUs by ``gpus`` from now on."""
        self.held_gpu_s += self.held * self._inside(self._at_s, now_s)
        self.held += gpus
        self._at_s = now_s

    def lose(self, gpus: int, from_s: float, until_s: float) -> float:
        """Count GPU-seconds inside the meter's span as lost, and return the whole loss."""
        self.lost_gpu_s += gpus * self._inside(from_s, until_s)
        return gpus * (until_s - from_s)

    def _inside(self, from_s: float, until_s: float) -> float:
        last = until_s if self.until_s is None else min(until_s, self.until_s)
        return max(0.0, last - max(from_s, self.from_s))


@dataclass(slots=True)
class ReplayClock:
    """Clock that carries out the decisions of a policy and knows the end of every job.

    Attributes:
        pass_ms: Duration of each pass, in milliseconds of real time.
    """

    costs: Costs
    meter: Meter
    pass_ms: list[float] = field(default_factory=list)
    _ends: list[tuple[float, int, int, Run]] = field(default_factory=list)

    def start(self, run: Run, now_s: float) -> None:
        """Start or resume a job; a resumed job makes no progress for ``restart_s``."""
        resumes = run.attempt > 0
        run.attempt += 1
        run.started_s = now_s
        run.working_s = now_s + (self.costs.restart_s if resumes else 0.0)
        if run.first_start_s is None:
            run.first_start_s = now_s
        self.meter.change(run.job.gpus, now_s)
        heapq.heappush(self._ends, (run.working_s + run.left_s, run.index, run.attempt, run))

    def pause(self, run: Run, now_s: float, claimant: int | None = None) -> float:
        """Preempt a running job, which keeps its progress except the unsaved part.

        Args:
            claimant: Index of the job that gets the GPUs.

        Returns:
            Lost seconds of this start: its restart and its unsaved progress.
        """
        started_s = self._leave(run, now_s)
        made_s = max(0.0, now_s - run.working_s)
        lost_s = min(made_s, self.costs.lost_progress_s)
        run.left_s -= made_s - lost_s
        run.preemptions += 1
        run.made_way_for.append(claimant)
        restart_until_s = min(run.working_s, now_s)
        run.lost_gpu_s += self.meter.lose(run.job.gpus, started_s, restart_until_s)
        run.lost_gpu_s += self.meter.lose(run.job.gpus, now_s - lost_s, now_s)
        return restart_until_s - started_s + lost_s

    def next_end_s(self) -> float:
        """Return the time of the next end; infinite when no job runs."""
        while self._ends:
            end_s, _, attempt, run = self._ends[0]
            if run.attempt == attempt and run.started_s is not None:
                return end_s
            heapq.heappop(self._ends)
        return math.inf

    def end_next(self) -> Run:
        """End the job with the earliest end, and return it."""
        end_s, _, _, run = heapq.heappop(self._ends)
        started_s = self._leave(run, end_s)
        run.lost_gpu_s += self.meter.lose(run.job.gpus, started_s, run.working_s)
        run.left_s = 0.0
        run.end_s = end_s
        return run

    def _leave(self, run: Run, now_s: float) -> float:
        started_s, run.started_s = run.started_s, None
        if started_s is None:
            raise AssertionError(f"job {run.index} of the trace is not running")
        self.meter.change(-run.job.gpus, now_s)
        run.held.append((started_s, now_s))
        return started_s


def play(runs: Sequence[Run], decider: Decider, clock: ReplayClock) -> None:
    """Run all jobs to their ends; ``runs`` are ordered by submission."""
    position = 0
    while (
        position < len(runs)
        or clock.next_end_s() < math.inf
        or (decider.waiting and decider.wake_s is not None)
    ):
        submit_s = runs[position].job.submit_s if position < len(runs) else math.inf
        wake_s = decider.wake_s if decider.waiting else None
        now_s = min(submit_s, clock.next_end_s(), math.inf if wake_s is None else wake_s)
        while clock.next_end_s() <= now_s:
            decider.ended(clock.end_next(), now_s)
        while position < len(runs) and runs[position].job.submit_s <= now_s:
            decider.submitted(runs[position], now_s)
            position += 1
        if decider.waiting:
            begin = time.perf_counter()
            decider.decide(clock, now_s)
            clock.pass_ms.append((time.perf_counter() - begin) * 1000)
    if decider.waiting:
        raise AssertionError("a job that fits the empty pool was never started")
