"""Estimates of job starts, by running the core forward in virtual time (R22).

A few rollouts are simulated, from one in which all jobs end early to one in which all end late. A
job's estimate is the range of its starts in them, and their median. A job without a known end never
ends here, so that an estimate may lack its late bound or be missing.

The forecast does not include future submissions and cancellations. Its cost is bounded by
``MOST_PASSES`` passes per rollout. Later passes cover many ends at once. Keep it off the hot path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from benchpool_scheduler.core.cluster.budgets_in_time import HourOutlook
from benchpool_scheduler.core.forecast.rollout import (
    ROLLOUTS,
    Dependent,
    Quantile,
    Rollout,
    SimulatedStart,
)
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.model import Activity, JobId, Snapshot
from benchpool_scheduler.phrases import count

HORIZON_S = 30 * 86_400.0
MOST_PASSES = 256


class BasisKind(StrEnum):
    """Source of the end that a start waits for."""

    LEARNED = "learned"  # run times of similar jobs
    TIME_LIMIT = "time-limit"  # time limit of the job
    RULES = "rules"  # other jobs are leaving, or must leave by then


class Basis(NamedTuple):
    """Basis of an estimate.

    Attributes:
        level: Level of the learned run time, one of ``run_times.LEVELS``.
        examples: Number of runs learned from.
    """

    kind: BasisKind
    level: str | None = None
    examples: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated start of a job, in seconds from the snapshot's instant.

    Attributes:
        earliest_s, likely_s, latest_s: Ordered bounds. None means unknown.
        waits_for: Job whose end lets it start, in the rollout with the likely start.
        basis: Basis of the likely start, or None if that is unknown.
    """

    earliest_s: float | None
    likely_s: float | None
    latest_s: float | None
    waits_for: JobId | None = None
    basis: Basis | None = None


def forecast(
    snapshot: Snapshot,
    expected: Mapping[JobId, Expectation],
    jobs: Collection[JobId] | None = None,
    *,
    horizon_s: float = HORIZON_S,
    most_passes: int = MOST_PASSES,
    resumes: Collection[JobId] = (),
    should_continue: Callable[[], bool] = lambda: True,
    hours: HourOutlook | None = None,
    dependents: Sequence[Dependent] = (),
) -> dict[JobId, Estimate]:
    """Return when jobs will start. Jobs without an estimate are left out.

    Args:
        expected: Run times from ``RunTimes.expect``, for running and waiting jobs. A waiting job
            that starts holds its GPUs for this time. A job without one ends by its time limit, or
            never.
        jobs: Jobs to estimate, or None for all that wait.
        horizon_s: Length of the simulated time, in seconds.
        most_passes: Limit on the passes of each rollout.
        resumes: Jobs that are leaving their GPUs and will be queued again.
        should_continue: Called before each pass. When it returns False, the forecast ends.
        hours: Budgets of GPU-hours. A job that they block starts when a month begins.
        dependents: Jobs that are queued once other jobs have ended.

    >>> from benchpool_scheduler.core.model import GpuId, JobFacts, Node, NodeName, Project
    >>> from benchpool_scheduler.core.model import ProjectName, Worker
    >>> gpu, project = GpuId("gpu"), ProjectName("vision")
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("box"), (gpu,)),),
    ...     projects=(Project(project, quota=1),),
    ...     jobs=(
    ...         JobFacts(
    ...             JobId("a"), project, activity=Activity.RUNNING,
    ...             held=(Worker(NodeName("box"), (gpu,)),), ran_s=60.0,
    ...         ),
    ...         JobFacts(JobId("b"), project),
    ...     ),
    ... )
    >>> forecast(pool, {JobId("a"): Expectation(60.0, 90.0, 600.0)})
    {'b': Estimate(earliest_s=0.0, likely_s=30.0, latest_s=540.0, waits_for='a', \
basis=Basis(kind=<BasisKind.LEARNED: 'learned'>, level='pool', examples=0))}
    >>> forecast(pool, {})
    {}
    """
    wanted = [job for job in _waiting(snapshot, dependents) if jobs is None or job in jobs]
    starts: list[dict[JobId, SimulatedStart]] = []
    for number in sorted(range(ROLLOUTS), key=lambda number: abs(number - ROLLOUTS // 2)):
        if starts and not should_continue():
            break
        rollout = Rollout(snapshot, expected, Quantile(number), resumes, hours, dependents)
        rollout.run(wanted, horizon_s, most_passes, should_continue)
        starts.append(rollout.simulated)
    leaving = {job.id for job in snapshot.jobs if job.activity is Activity.TERMINATING}
    found = {
        job: _estimate([simulated.get(job) for simulated in starts], expected, leaving)
        for job in wanted
    }
    return {job: estimate for job, estimate in found.items() if estimate is not None}


def _waiting(snapshot: Snapshot, dependents: Sequence[Dependent]) -> list[JobId]:
    queued = [job.id for job in snapshot.jobs if job.activity is Activity.QUEUED]
    return queued + [it.job.id for it in dependents]


def _estimate(
    simulated: Sequence[SimulatedStart | None],
    expected: Mapping[JobId, Expectation],
    leaving: Collection[JobId],
) -> Estimate | None:
    """Return the range and the median of a job's starts, or None if it never starts.

    A rollout without a start counts as the latest. The late bound is known only if all rollouts
    were simulated and the job starts in every one.
    """
    starts = sorted((it for it in simulated if it is not None), key=lambda it: it.at_s)
    if not starts:
        return None
    middle = starts[len(simulated) // 2] if len(simulated) // 2 < len(starts) else None
    basis = None if middle is None else _basis(middle.after, expected, leaving)
    # The rules give the latest start: any earlier end lets the job start sooner.
    sooner = basis is not None and basis.kind is BasisKind.RULES
    return Estimate(
        earliest_s=0.0 if sooner else starts[0].at_s,
        likely_s=None if middle is None else middle.at_s,
        latest_s=starts[-1].at_s if len(starts) == ROLLOUTS else None,
        waits_for=None if middle is None else middle.after,
        basis=basis,
    )


def _basis(
    after: JobId | None, expected: Mapping[JobId, Expectation], leaving: Collection[JobId]
) -> Basis:
    """Return the basis of a start that follows the end of a job, or of no job."""
    if after is None or after in leaving:
        return Basis(BasisKind.RULES)
    known = expected.get(after)
    if known is None:
        return Basis(BasisKind.TIME_LIMIT)
    return Basis(BasisKind.LEARNED, known.level, round(known.examples))


def waits_for(estimate: Estimate, project: str | None) -> str | None:
    """Return which job's end a job waits for. The other job is named by its shortened ID only.

    Args:
        project: Project of the other job, or None if the reader may not see it.

    >>> waits_for(Estimate(60, 900, 2400, JobId("3f2a9c1b7d")), "vision")
    'it waits for job 3f2a9c1b of project vision'
    """
    if estimate.waits_for is None:
        return None
    which = "another job"
    if project is not None:
        which = f"job {estimate.waits_for[:8]} of project {project}"
    return f"it waits for {which}"


def estimate_basis(
    kind: str,
    level: str | None = None,
    runs: int = 0,
    *,
    same_user: bool = False,
    same_project: bool = False,
    yours: bool = False,
) -> str:
    """Return the basis of an estimate as text.

    Args:
        same_user: The runs are those of the waiting job's user.
        same_project: The runs are those of the waiting job's project.
        yours: The reader is that user.

    >>> estimate_basis("learned", "user-name", 14, same_user=True, yours=True)
    'learned from 14 runs of yours'
    >>> estimate_basis("learned", "pool", 6), estimate_basis("time-limit")
    ('learned from 6 runs of this pool', 'by the time limit of the job it waits for')
    """
    if kind == "time-limit":
        return "by the time limit of the job it waits for"
    if kind == "rules":
        return "by the rules of the pool: other jobs end or are preempted by then"
    mine = "yours" if yours else "its user"
    whose = {
        "project": "its project" if same_project else "the project it waits for",
        "pool": "this pool",
    }.get(level or "pool", mine if same_user else "the user it waits for")
    return f"learned from {count(runs, 'run')} of {whose}"
