"""When waiting jobs will start: the core run forward in virtual time (R22).

A few courses of things are played, from one in which all jobs end early to one in which all end
late. A job's estimate is the range of its starts in them, and their median. A job whose end nobody
knows never ends here, so that an estimate may lack its late bound, or be missing altogether.

What the forecast does not know: jobs that are still to be submitted, and jobs that users will
cancel. Its cost is bounded by ``MOST_PASSES`` passes for each course, the later ones shared by many
ends. Keep it off the hot path.
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
    """What is known of the end that a start waits for."""

    LEARNED = "learned"  # how long such jobs ran
    TIME_LIMIT = "time-limit"  # when it is stopped at the latest
    RULES = "rules"  # others leave already, or have to give way by then


class Basis(NamedTuple):
    """What an estimate rests on.

    Attributes:
        level: Of what was learned, one of ``run_times.LEVELS``; ``examples``: how many runs.
    """

    kind: BasisKind
    level: str | None = None
    examples: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a job will start, in seconds from the snapshot's instant.

    Attributes:
        earliest_s, likely_s, latest_s: Ordered; None for a bound that is not known.
        waits_for: The job whose end lets it start, in the course with the likely start.
        basis: What the likely start rests on; None where it is not known.
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
    go_on: Callable[[], bool] = lambda: True,
    hours: HourOutlook | None = None,
    dependents: Sequence[Dependent] = (),
) -> dict[JobId, Estimate]:
    """Return when jobs will start; a job of which nothing can be said is not in the answer.

    Args:
        expected: Run times as ``RunTimes.expect`` gives them, for running and waiting jobs: a
            waiting job that starts holds its GPUs so long. A job that is not in it ends by its
            time limit, or never.
        jobs: Whose starts are asked for; None for all that wait.
        horizon_s: How far to look, in seconds.
        most_passes: At most so many passes in each course.
        resumes: Jobs that are leaving their GPUs and will queue again.
        go_on: Asked before each pass; once it says no, the answer is what is known by then.
        hours: Budgets of GPU-hours; a job that they hold back starts when a month begins.
        dependents: Jobs that wait for others to end, and then in line.

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
        if starts and not go_on():
            break
        rollout = Rollout(snapshot, expected, Quantile(number), resumes, hours, dependents)
        rollout.run(wanted, horizon_s, most_passes, go_on)
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
    """Return the range and the median of a job's starts, None where it never starts.

    A course in which it does not start counts as the latest. The late bound holds only when all
    courses were played and it starts in every one.
    """
    starts = sorted((it for it in simulated if it is not None), key=lambda it: it.at_s)
    if not starts:
        return None
    middle = starts[len(simulated) // 2] if len(simulated) // 2 < len(starts) else None
    basis = None if middle is None else _basis(middle.after, expected, leaving)
    # By the rules it starts then at the latest: any end before that lets it start sooner.
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
    """Return what a start rests on that comes after the end of a job, or after none."""
    if after is None or after in leaving:
        return Basis(BasisKind.RULES)
    known = expected.get(after)
    if known is None:
        return Basis(BasisKind.TIME_LIMIT)
    return Basis(BasisKind.LEARNED, known.level, round(known.examples))


def waits_for(estimate: Estimate, project: str | None) -> str | None:
    """Return for whose end a job waits; the other job is named by the start of its id only.

    Args:
        project: That of the other job; None where the reader may not see it.

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
    """Return what an estimate rests on; ``same`` is as of the job that waits, ``yours`` the reader.

    >>> estimate_basis("learned", "user-name", 14, same_user=True, yours=True)
    'learned from 14 runs of yours'
    >>> estimate_basis("learned", "pool", 6), estimate_basis("time-limit")
    ('learned from 6 runs of this pool', 'by the time limit of the job it waits for')
    """
    if kind == "time-limit":
        return "by the time limit of the job it waits for"
    if kind == "rules":
        return "by the rules of the pool: others leave or give way by then"
    mine = "yours" if yours else "its user"
    whose = {
        "project": "its project" if same_project else "the project it waits for",
        "pool": "this pool",
    }.get(level or "pool", mine if same_user else "the user it waits for")
    return f"learned from {count(runs, 'run')} of {whose}"
