"""The virtual clock of a replay: submissions, ends, pauses and what they cost.

Events of one instant are one batch: first the ends, then the submissions, then one pass. A pass
runs when something waits, also when a protection runs out that could have held something back
(R19). Every command takes effect at once, so the grace period costs nothing here; what a pause
costs is what ``Costs`` says.
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
    """What one preemption costs its job, in seconds of its run time (formats, section 2).

    Attributes:
        restart_s: From a resume until it makes progress again.
        lost_progress_s: Mean progress since the last checkpoint; never more than it made.
    """

    restart_s: float = 60.0
    lost_progress_s: float = 0.0


@dataclass(slots=True, eq=False)
class Run:
    """One job on its way through the replay.

    Attributes:
        left_s: Run time that is still to be made; ``started_s``: its present start, None when it
            holds nothing; ``working_s``: from when on it makes progress.
        attempt: How often it was started.
        lost_gpu_s: GPU seconds held without lasting progress: restarts and lost progress.
        refused: A budget of GPU-hours refused its submission, and it came again.
        held: From when until when each start held its GPUs; all but the last ended with a pause.
        made_way_for: For each pause the index of the job that got the room, None for no one job.
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
        """Return all time not spent making progress (formats, section 2)."""
        return max(0.0, self.end_s - self.job.submit_s - self.job.duration_s)

    @property
    def jct_s(self) -> float:
        """Return its completion time: from submission to end."""
        return self.end_s - self.job.submit_s


class Decider(Protocol):
    """A policy. It learns of a job's run time only by ``ended``."""

    @property
    def waiting(self) -> bool:
        """Tell whether anything waits."""

    @property
    def wake_s(self) -> float | None:
        """Return when its answer may change although nothing happens."""

    def submitted(self, run: Run, now_s: float) -> None:
        """A job is new."""

    def ended(self, run: Run, now_s: float) -> None:
        """A running job has done its work; its GPUs are free."""

    def decide(self, clock: ReplayClock, now_s: float) -> None:
        """Start and pause jobs through the clock."""


@dataclass(slots=True)
class Meter:
    """GPU seconds held, and lost, between two instants.

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
        """So many GPUs more, or less, are held from now on."""
        self.held_gpu_s += self.held * self._inside(self._at_s, now_s)
        self.held += gpus
        self._at_s = now_s

    def lose(self, gpus: int, from_s: float, until_s: float) -> float:
        """Count held GPU seconds as lost; return all of them, also those outside."""
        self.lost_gpu_s += gpus * self._inside(from_s, until_s)
        return gpus * (until_s - from_s)

    def _inside(self, from_s: float, until_s: float) -> float:
        last = until_s if self.until_s is None else min(until_s, self.until_s)
        return max(0.0, last - max(from_s, self.from_s))


@dataclass(slots=True)
class ReplayClock:
    """Carries out what a policy decides, and knows when every job ends.

    Attributes:
        pass_ms: How long each pass took, in milliseconds of real time.
    """

    costs: Costs
    meter: Meter
    pass_ms: list[float] = field(default_factory=list)
    _ends: list[tuple[float, int, int, Run]] = field(default_factory=list)

    def start(self, run: Run, now_s: float) -> None:
        """Start a job, or resume it; a resume makes no progress for ``restart_s``."""
        resumes = run.attempt > 0
        run.attempt += 1
        run.started_s = now_s
        run.working_s = now_s + (self.costs.restart_s if resumes else 0.0)
        if run.first_start_s is None:
            run.first_start_s = now_s
        self.meter.change(run.job.gpus, now_s)
        heapq.heappush(self._ends, (run.working_s + run.left_s, run.index, run.attempt, run))

    def pause(self, run: Run, now_s: float, claimant: int | None = None) -> float:
        """Preempt a running job: it keeps its progress, less what it had not saved.

        Args:
            claimant: Index of the job that gets the room.

        Returns:
            How many seconds of this start came to nothing: its restart and what was not saved.
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
        """Return when the next job ends; infinite when none runs."""
        while self._ends:
            end_s, _, attempt, run = self._ends[0]
            if run.attempt == attempt and run.started_s is not None:
                return end_s
            heapq.heappop(self._ends)
        return math.inf

    def end_next(self) -> Run:
        """End the job whose end is next, and return it."""
        end_s, _, _, run = heapq.heappop(self._ends)
        started_s = self._leave(run, end_s)
        run.lost_gpu_s += self.meter.lose(run.job.gpus, started_s, run.working_s)
        run.left_s = 0.0
        run.end_s = end_s
        return run

    def _leave(self, run: Run, now_s: float) -> float:
        started_s, run.started_s = run.started_s, None
        if started_s is None:
            raise AssertionError(f"job {run.index} of the trace does not run")
        self.meter.change(-run.job.gpus, now_s)
        run.held.append((started_s, now_s))
        return started_s


def play(runs: Sequence[Run], decider: Decider, clock: ReplayClock) -> None:
    """Run all jobs to their ends; ``runs`` are by submission."""
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
