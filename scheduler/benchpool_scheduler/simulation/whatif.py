"""What-if over a recorded workload: the same jobs replayed in two pools.

The replay is that of ``benchpool replay``: the product's own core in virtual time, with hidden run
times. Only quotas, tree, policy and nodes differ between the two sides.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.accounting.percentiles import percentile
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.cluster.budgets_in_time import BudgetsInTime, HourOutlook
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.fairness.hour_standing import HourBudgets
from benchpool_scheduler.core.model import (
    JobFacts,
    JobId,
    Node,
    Policy,
    Project,
    ProjectName,
    Snapshot,
)
from benchpool_scheduler.core.whatif.preview import could_ever_run
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation.replay.engine import Costs, Meter, ReplayClock, Run, play
from benchpool_scheduler.simulation.replay.guaranteed import Guaranteed
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.replay.summary import (
    HOUR_S,
    SHORT_S,
    Summary,
    mean,
    summarise,
)
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_scheduler.simulation.whatif_causes import (
    Pair,
    PauseCauses,
    WaitCauses,
    pause_causes,
    wait_causes,
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two pools: its nodes, its tree of projects, its policy.

    Attributes:
        hours: Budgets of GPU-hours, by the clock of the jobs; hours of benches are not counted.
    """

    nodes: tuple[Node, ...]
    projects: tuple[Project, ...]
    policy: Policy
    hours: HourBudgets | None = None

    @property
    def gpus(self) -> int:
        """Return the number of GPUs that the train pool may use."""
        return sum(max(0, len(node.gpus) - node.kept) for node in self.nodes if node.ready)


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of the jobs of one project, in hours; ``lost_gpu_h`` is restarts and lost progress."""

    mean_wait_h: float
    p95_wait_h: float
    preemptions: int
    lost_gpu_h: float


@dataclass(frozen=True, slots=True)
class ProjectComparison:
    """One project on both sides; ``gpu_h`` is the work of its jobs."""

    name: str
    jobs: int
    gpu_h: float
    before: Waits
    after: Waits
    causes: WaitCauses


@dataclass(frozen=True, slots=True)
class Replayed:
    """The same jobs on both sides.

    Attributes:
        left_out: Jobs that are not replayed because they could never run on one side.
        projects: Projects with jobs, in the order of their first submission.
        waits: Causes of longer waits on the second side. ``short_waits``: the same for short jobs.
            ``pauses``: causes of the pauses.
        refused: On each side, jobs that a budget of GPU-hours rejected; they were submitted again
            when the next month began.
    """

    before: Summary
    after: Summary
    left_out: int
    projects: tuple[ProjectComparison, ...]
    waits: WaitCauses
    short_waits: WaitCauses
    pauses: PauseCauses
    refused: tuple[int, int] = (0, 0)


def replay_both(
    jobs: Sequence[TraceJob],
    before: Side,
    after: Side,
    costs: Costs,
    span_s: tuple[float, float] | None = None,
) -> Replayed:
    """Replay the jobs on both sides.

    Args:
        jobs: By submission.
        span_s: Begin and end of the measured span; None: from the first submission to the last
            end.

    Raises:
        InvalidInput: No job could run on both sides.
    """
    chosen = _chosen(jobs, (before, after))
    was, were = _play(chosen, before, costs, span_s)
    would, then = _play(chosen, after, costs, span_s)
    pairs = list(zip(were, then, strict=True))
    short = [pair for pair in pairs if pair[0].job.duration_s < SHORT_S]
    return Replayed(
        before=was,
        after=would,
        left_out=len(jobs) - len(chosen),
        projects=tuple(_projects(pairs)),
        waits=wait_causes(pairs, pairs),
        short_waits=wait_causes(short, pairs),
        pauses=pause_causes(pairs),
        refused=(sum(run.refused for run in were), sum(run.refused for run in then)),
    )


def replay_on(
    side: Side,
    jobs: Sequence[TraceJob],
    costs: Costs,
    span_s: tuple[float, float] | None = None,
) -> Summary:
    """Replay the jobs on one side; see ``replay_both``.

    Raises:
        InvalidInput: No job could run here.
    """
    return _play(_chosen(jobs, (side,)), side, costs, span_s)[0]


def _chosen(jobs: Sequence[TraceJob], sides: Sequence[Side]) -> list[tuple[TraceJob, int]]:
    """Return the jobs that could run on all sides, with their numbers of workers."""
    fit = _Fit(sides)
    chosen = [(job, workers) for job in jobs if (workers := fit.workers_of(job)) is not None]
    if not chosen:
        raise InvalidInput(
            f"None of the {len(jobs)} recorded jobs could run in both pools: their projects are "
            "missing or hold no jobs, or the pool is too small. Choose another configuration."
        )
    return chosen


class _Fit:
    """Cache of the number of workers for each shape of job, valid on both sides."""

    def __init__(self, sides: Iterable[Side]) -> None:
        self._sides = tuple(sides)
        self._leaves = [
            {p.name for p in side.projects} - {p.parent for p in side.projects}
            for side in self._sides
        ]
        self._known: dict[tuple[str, int, int | None, str | None], int | None] = {}

    def workers_of(self, job: TraceJob) -> int | None:
        """Return the number of workers, or None for a job that could never run on one side."""
        shape = (job.project, job.gpus, job.workers, job.user)
        if shape not in self._known:
            self._known[shape] = self._find(job)
        return self._known[shape]

    def _find(self, job: TraceJob) -> int | None:
        if any(job.project not in leaves for leaves in self._leaves):
            return None
        budgets = [side.hours for side in self._sides if side.hours is not None]
        if not all(it.ever_allow(job.project, job.user) for it in budgets):
            return None
        for workers in [job.workers] if job.workers else range(1, job.gpus + 1):
            if job.gpus % workers == 0 and self._could_run(job, workers):
                return workers
        return None

    def _could_run(self, job: TraceJob, workers: int) -> bool:
        gang = JobFacts(
            JobId("what-if"),
            ProjectName(job.project),
            spec=JobSpec(gpus=job.gpus // workers, workers=workers, min_workers=workers),
        )
        return all(
            could_ever_run(Snapshot(side.nodes, side.projects, ()), gang) for side in self._sides
        )


class _AsConfigured(Guaranteed):
    """The core on the nodes and projects of a side, instead of equal nodes and flat quotas."""

    def __init__(self, side: Side, policy: Policy, now_s: float) -> None:
        super().__init__(ReplayPool(1, side.gpus), {}, policy)
        self.state = ClusterState(side.nodes, side.projects, policy)
        if side.hours is not None and side.hours.bounds:
            self.hours = BudgetsInTime(HourOutlook(side.hours), side.projects, now_s)


def _play(
    chosen: Sequence[tuple[TraceJob, int]],
    side: Side,
    costs: Costs,
    span_s: tuple[float, float] | None,
) -> tuple[Summary, list[Run]]:
    begin = time.perf_counter()
    first_s = chosen[0][0].submit_s
    clock = ReplayClock(costs, Meter(*(span_s or (first_s, None))))
    runs = play_on(side, chosen, costs, clock)
    summary = summarise(
        runs,
        clock,
        gpus=side.gpus,
        policy="guaranteed",
        span_s=span_s or (first_s, max(run.end_s for run in runs)),
        wall_s=time.perf_counter() - begin,
    )
    return summary, runs


def play_on(
    side: Side,
    jobs: Sequence[tuple[TraceJob, int]],
    costs: Costs,
    clock: ReplayClock | None = None,
) -> list[Run]:
    """Return the run of each job on a side.

    Args:
        jobs: By submission, each with its number of workers; all of them can run here.
        clock: Meters the held GPUs; a new one by default.
    """
    runs = [Run.of(index, job, workers) for index, (job, workers) in enumerate(jobs)]
    first_s = runs[0].job.submit_s
    policy = replace(side.policy, restart_s=costs.restart_s)
    decider = _AsConfigured(side, policy, first_s)
    play(runs, decider, clock or ReplayClock(costs, Meter(first_s, None)))
    return runs


def _projects(pairs: Sequence[Pair]) -> Iterable[ProjectComparison]:
    for name in dict.fromkeys(before.job.project for before, _ in pairs):
        own = [pair for pair in pairs if pair[0].job.project == name]
        was, would = [before for before, _ in own], [after for _, after in own]
        gpu_h = sum(run.job.work_gpu_s for run in was) / HOUR_S
        causes = wait_causes(own, pairs)
        yield ProjectComparison(name, len(was), gpu_h, _waits(was), _waits(would), causes)


def _waits(runs: Sequence[Run]) -> Waits:
    waits = sorted(run.wait_s for run in runs)
    return Waits(
        mean_wait_h=mean(waits) / HOUR_S,
        p95_wait_h=percentile(waits, 95) / HOUR_S,
        preemptions=sum(run.preemptions for run in runs),
        lost_gpu_h=sum(run.lost_gpu_s for run in runs) / HOUR_S,
    )
