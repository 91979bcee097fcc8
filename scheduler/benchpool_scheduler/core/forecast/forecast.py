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

from benchpool_scheduler.core.forecast.rollout import (
    ROLLOUTS,
    Quantile,
    Rollout,
    SimulatedStart,
    left_s,
)
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.model import Activity, JobId, Snapshot
from benchpool_scheduler.phrases import steady_bound

HORIZON_S = 30 * 86_400.0
MOST_PASSES = 256


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a job will start, in seconds from the snapshot's instant.

    Attributes:
        earliest_s, likely_s, latest_s: Ordered; None for a bound that is not known.
        waits_for: The job whose end lets it start, in the course with the likely start.
        ends_within_s: When that job ends, at the latest that is expected; None where not known.
    """

    earliest_s: float | None
    likely_s: float | None
    latest_s: float | None
    waits_for: JobId | None = None
    ends_within_s: float | None = None


def forecast(
    snapshot: Snapshot,
    expected: Mapping[JobId, Expectation],
    jobs: Collection[JobId] | None = None,
    *,
    horizon_s: float = HORIZON_S,
    most_passes: int = MOST_PASSES,
    resumes: Collection[JobId] = (),
    go_on: Callable[[], bool] = lambda: True,
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
ends_within_s=540.0)}
    >>> forecast(pool, {})
    {}
    """
    queued = [job.id for job in snapshot.jobs if job.activity is Activity.QUEUED]
    wanted = queued if jobs is None else [job for job in queued if job in set(jobs)]
    starts: list[dict[JobId, SimulatedStart]] = []
    for number in sorted(range(ROLLOUTS), key=lambda number: abs(number - ROLLOUTS // 2)):
        if starts and not go_on():
            break
        rollout = Rollout(snapshot, expected, Quantile(number), resumes)
        rollout.run(wanted, horizon_s, most_passes, go_on)
        starts.append(rollout.simulated)
    late = _last_ends(snapshot, expected)
    found = {job: _estimate([simulated.get(job) for simulated in starts], late) for job in wanted}
    return {job: estimate for job, estimate in found.items() if estimate is not None}


def _last_ends(snapshot: Snapshot, expected: Mapping[JobId, Expectation]) -> dict[JobId, float]:
    """Return how long each job with GPUs goes on at the latest, where that is known."""
    lefts = {
        job.id: left_s(job, expected.get(job.id), snapshot.now_s, 1.0)
        for job in snapshot.jobs
        if job.activity is Activity.RUNNING
    }
    return {job: left for job, left in lefts.items() if left is not None}


def _estimate(
    simulated: Sequence[SimulatedStart | None], late: Mapping[JobId, float]
) -> Estimate | None:
    """Return the range and the median of a job's starts, None where it never starts.

    A course in which it does not start counts as the latest. The late bound holds only when all
    courses were played and it starts in every one.
    """
    starts = sorted((it for it in simulated if it is not None), key=lambda it: it.at_s)
    if not starts:
        return None
    middle = starts[len(simulated) // 2] if len(simulated) // 2 < len(starts) else None
    after = None if middle is None else middle.after
    return Estimate(
        earliest_s=starts[0].at_s,
        likely_s=None if middle is None else middle.at_s,
        latest_s=starts[-1].at_s if len(starts) == ROLLOUTS else None,
        waits_for=after,
        ends_within_s=None if after is None else late.get(after),
    )


def waits_for(estimate: Estimate, project: str | None, passed_s: float = 0.0) -> str | None:
    """Return for whose end a job waits; the other job is named by the start of its id only.

    Args:
        project: That of the other job; None where the reader may not see it.
        passed_s: How old the estimate is, in seconds.

    >>> waits_for(Estimate(60, 900, 2400, JobId("3f2a9c1b7d"), 2400.0), "vision")
    'it waits for job 3f2a9c1b of project vision, within 40 min'
    """
    if estimate.waits_for is None:
        return None
    which = "another job"
    if project is not None:
        which = f"job {estimate.waits_for[:8]} of project {project}"
    told = f"it waits for {which}"
    if estimate.ends_within_s is None:
        return told
    return f"{told}, within {steady_bound(max(1.0, estimate.ends_within_s - passed_s))}"
