"""How many GPUs a workload would have needed, in one pool and in static shares."""

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
    """Each project needs its GPUs for an hour, one after the other."""
    return [
        TraceJob(number, number * HOUR, HOUR, gpus, f"p{number % projects}") for number in range(12)
    ]


def test_projects_that_need_gpus_in_turn_need_as_many_as_one_of_them() -> None:
    found = enough(shifts(3), {}, Policy(), Costs(), 600.0)
    assert (found.pool, dict(found.static)) == (4, {"p0": 4, "p1": 4, "p2": 4})


def test_who_may_wait_needs_fewer() -> None:
    jobs = [TraceJob(number, 0.0, HOUR, 1, "p") for number in range(10)]
    needs = [enough(jobs, {}, Policy(), Costs(), wait_s).pool for wait_s in (0, HOUR, 9 * HOUR)]
    assert needs == [10, 5, 1]
    assert most_at_once(jobs) == 10


def test_the_largest_job_is_the_least() -> None:
    jobs = [TraceJob(0, 0.0, HOUR, 8, "p"), TraceJob(1, 0.0, HOUR, 1, "q")]
    assert enough(jobs, {}, Policy(), Costs(), 100 * HOUR).pool == 8


def monthly(hard: float, begin_s: float = 10 * HOUR) -> HourBudgets:
    """A budget of project p, in months of 10 hours from an instant on."""
    bound = {"p": HourBudget(hard=hard)}

    def month_of(at_s: float) -> tuple[float, float]:
        first = (at_s - begin_s) // (10 * HOUR) * 10 * HOUR + begin_s
        return first, first + 10 * HOUR

    return HourBudgets(bound, {"p": None, "q": None}, {}, {}, HourBudget(), month_of)


def test_whom_a_budget_refuses_counts_from_the_month_in_which_it_may_begin() -> None:
    # At hour 2 the budget of 4 GPU-hours is used up: what comes then begins at hour 10.
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
    # As none of them waits for GPUs, the four that p and q have at once are enough.
    assert enough(found.jobs, {}, Policy(), Costs(), 600.0).pool == 4


def test_what_comes_together_as_a_month_begins_needs_more_gpus() -> None:
    jobs = [TraceJob(n, n * HOUR, 0.9 * HOUR, 1, "p") for n in range(6)]
    assert enough(jobs, {}, Policy(), Costs(), 600.0).pool == 1
    found = accepted(jobs, monthly(0.5))
    assert [job.submit_s / HOUR for job in found.jobs] == [0, 10, 10, 10, 10, 10]
    assert enough(found.jobs, {}, Policy(), Costs(), 600.0).pool == 5


def test_a_month_of_those_that_were_refused_can_be_used_up_again() -> None:
    jobs = [TraceJob(n, n * HOUR, 2 * HOUR, 1, "p") for n in range(4)]
    late = [*jobs, TraceJob(9, 12 * HOUR, HOUR, 1, "p")]
    found = accepted(late, monthly(2))
    assert [(job.line, job.submit_s / HOUR) for job in found.jobs] == [
        *((0, 0), (1, 1)),
        *((2, 10), (3, 10), (9, 20)),
    ]
    assert found.refused == 3


def test_a_budget_of_nothing_leaves_jobs_out_and_none_changes_nothing() -> None:
    jobs = [TraceJob(2, 0.0, HOUR, 1, "p"), TraceJob(3, 0.0, HOUR, 1, "q")]
    assert accepted(jobs, monthly(0)) == Accepted((jobs[1],), never=1)
    assert accepted(jobs, monthly(1e9)).jobs == tuple(jobs)
