"""How many GPUs a workload would have needed, in one pool and in static shares."""

from __future__ import annotations

from benchpool_scheduler.core.model import Policy
from benchpool_scheduler.simulation.enough import enough, most_at_once
from benchpool_scheduler.simulation.replay.engine import Costs
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
