"""Use reports of a service that ran several days of a trace, with benches and preemptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.use import EnoughQuery, UseBy, UseClass, UseQuery
from benchpool_scheduler.simulation.replay.trace import read
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, make_pool, opened, story
from benchpool_support.scripted import machine
from benchpool_support.traced_days import TimelyRuntime, TracedDays, chosen
from benchpool_support.traced_use import TEAMS

pytestmark = pytest.mark.slow

TRACE = Path(__file__).parents[3] / "docs/cases/workload/week.csv"
MONDAY = 1_795_392_000.0
GPUS, DAYS = 4, 1.5
TEXT = (
    "version: 1\nbuild: {default: 1, reserve: 1, oversubscribe: true, lend_idle: true}\nprojects:\n"
)
TEXT += "".join(
    f"  - {{name: {team}, quota: 1, members: [{', '.join(users)}]}}\n"
    for team, users in TEAMS.items()
)


async def test_gpu_time_is_classified_once_and_losses_match_pauses(
    tmp_path: Path,
) -> None:
    clock = FakeClock(MONDAY)
    gpus = machine("n1", gpus=GPUS)
    made = make_pool(
        tmp_path, configuration=story(TEXT), runtime=TimelyRuntime(gpus, clock), clock=clock
    )
    jobs = chosen(read(TRACE), 1, DAYS, GPUS, load=2)
    async with opened(made) as pool:
        lived = TracedDays(pool, clock)
        await lived.live(jobs, DAYS)
        found = await pool.use.report(ADMIN, UseQuery(by=UseBy.CLASS))
        assert sum(found.total.gpu_h.values()) == pytest.approx(GPUS * DAYS * 24, abs=1e-3)
        paused = [it for job in pool.jobs.select(ADMIN, all=True) for it in job.preemptions]
        assert paused, "nobody had to make way: these days prove less than they could"
        lost_h = sum(it.lost_gpu_s for it in paused) / 3600
        assert found.total.gpu_h.get(UseClass.LOST, 0.0) == pytest.approx(lost_h, abs=0.05)
        assert found.total.gpu_h[UseClass.IDLE_BENCH] > 0
        assert (found.total.coverage or 0.0) > 0.95
        ended = pool.jobs.select(ADMIN, all=True, state=State.SUCCEEDED)
        for job in ended:
            assert job.ended is not None
            assert (job.ended - job.submitted).total_seconds() >= lived.sent[job.id].duration_s - 1
        answer = await pool.use.enough(ADMIN, EnoughQuery(days=DAYS))
        assert 1 <= answer.gpus <= answer.static_gpus
