"""GPUs that a workload would have needed, in one pool and in static shares."""

from __future__ import annotations

from benchpool_scheduler.core.fairness.gpu_hours import HourBudget
from benchpool_scheduler.core.fairness.hour_standing import HourBudgets
from benchpool_scheduler.core.model import Policy
from benchpool_scheduler.simulation.enough import enough, most_at_once
from benchpool_scheduler.simulation.replay.engine import Costs
from benchpool_scheduler.simulation.replay.refusals import Accepted, accepted
from benchpool_scheduler.simulation.replay.trace import TraceJob

HOUR = 3600.0


def shifts(projects: int, gpus: int = 4) -> list[TraceJob]:
    """Return jobs of projects that need their GPUs for an hour, one after another."""
    return [
        TraceJob(number, number * HOUR, HOUR, gpus, f"p{number % projects}") for number in range(12)
    ]


def test_projects_needing_gpus_in_turn_need_only_one_share() -> None:
    found = enough(shifts(3), {}, Policy(), Costs(), 600.0)
    assert (found.pool, dict(found.static)) == (4, {"p0": 4, "p1": 4, "p2": 4})


def test_tolerated_wait_lowers_required_gpus() -> None:
    jobs = [TraceJob(number, 0.0, HOUR, 1, "p") for number in range(10)]
    needs = [enough(jobs, {}, Policy(), Costs(), wait_s).pool for wait_s in (0, HOUR, 9 * HOUR)]
    assert needs == [10, 5, 1]
    assert most_at_once(jobs) == 10


def test_largest_job_is_minimum() -> None:
    jobs = [TraceJob(0, 0.0, HOUR, 8, "p"), TraceJob(1, 0.0, HOUR, 1, "q")]
    assert enough(jobs, {}, Policy(), Costs(), 100 * HOUR).pool == 8


def monthly(hard: float, begin_s: float = 10 * HOUR) -> HourBudgets:
    """Return a budget of project p, in months of 10 hours that begin at an instant."""
    bound = {"p": HourBudget(hard=hard)}

    def month_of(at_s: float) -> tuple[float, float]:
        first = (at_s - begin_s) // (10 * HOUR) * 10 * HOUR + begin_s
        return first, first + 10 * HOUR

    return HourBudgets(bound, {"p": None, "q": None}, {}, {}, HourBudget(), month_of)


def test_job_over_budget_counts_from_next_month() -> None:
    # At hour 2 the budget of 4 GPU-hours is used up: later jobs begin at hour 10.
    jobs = [
        TraceJob(2, 0.0, HOUR, 4, "p"),
        TraceJob(3, 2 * HOUR, HOUR, 1, "p"),
        TraceJob(4, 2 * HOUR, HOUR, 2, "q"),
        TraceJob(5, 3 * HOUR, HOUR, 3, "p"),
    ]
    found = accepted(jobs, monthly(4))
    assert [(job.line, job.submit_s / HOUR) for job in found.jobs] == [
        *((2, 0), (4, 2)),
        *((3, 10), (5, 10)),
    ]
    assert (found.refused, found.never) == (2, 0)
    # None of them waits for GPUs: the four GPUs that p and q hold together are enough.
    assert enough(found.jobs, {}, Policy(), Costs(), 600.0).pool == 4


def test_jobs_deferred_to_same_month_need_more_gpus() -> None:
    jobs = [TraceJob(n, n * HOUR, 0.9 * HOUR, 1, "p") for n in range(6)]
    assert enough(jobs, {}, Policy(), Costs(), 600.0).pool == 1
    found = accepted(jobs, monthly(0.5))
    assert [job.submit_s / HOUR for job in found.jobs] == [0, 10, 10, 10, 10, 10]
    assert enough(found.jobs, {}, Policy(), Costs(), 600.0).pool == 5


def test_later_month_budget_is_used_by_deferred_jobs() -> None:
    jobs = [TraceJob(n, n * HOUR, 2 * HOUR, 1, "p") for n in range(4)]
    late = [*jobs, TraceJob(9, 12 * HOUR, HOUR, 1, "p")]
    found = accepted(late, monthly(2))
    assert [(job.line, job.submit_s / HOUR) for job in found.jobs] == [
        *((0, 0), (1, 1)),
        *((2, 10), (3, 10), (9, 20)),
    ]
    assert found.refused == 3


def test_zero_budget_excludes_jobs_and_large_budget_changes_nothing() -> None:
    jobs = [TraceJob(2, 0.0, HOUR, 1, "p"), TraceJob(3, 0.0, HOUR, 1, "q")]
    assert accepted(jobs, monthly(0)) == Accepted((jobs[1],), never=1)
    assert accepted(jobs, monthly(1e9)).jobs == tuple(jobs)
