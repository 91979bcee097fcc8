"""Retention of ended jobs is configurable, and their removal does not block requests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.housekeeping.retention import DAY_S, PRUNED
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, STORY, SUSAN, make_pool, opened, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices


def pool_that_keeps(folder: Path, clock: FakeClock, retention: str) -> Pool:
    settings = story(STORY + f"retention: {retention}\n")
    runtime = ScriptedRuntime(devices(9))
    return make_pool(folder, configuration=settings, clock=clock, runtime=runtime)


async def ended(pool: Pool, count: int) -> list[str]:
    """Let jobs end without a start; return their IDs, oldest first."""
    full = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
    found = []
    for _ in range(count):
        job = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
        found.append(job.id)
        await pool.jobs.act(SUSAN, job.id, "cancel")
    assert full.id not in found
    return found


def kept(pool: Pool) -> set[str]:
    jobs = pool.jobs.select(ADMIN, all=True, state=State.CANCELLED, limit=10_000)
    return {job.id for job in jobs}


@pytest.mark.parametrize(
    ("retention", "days", "left"),
    [
        ("{ended_days: 2}", 1.9, 5),
        ("{ended_days: 2}", 2.1, 0),
        ("{ended_jobs: 3}", 0.1, 3),
        ("{}", 29.0, 5),
        ("{}", 31.0, 0),
    ],
)
async def test_ended_jobs_are_kept_as_configured(
    tmp_path: Path, retention: str, days: float, left: int
) -> None:
    clock = FakeClock()
    async with opened(pool_that_keeps(tmp_path, clock, retention)) as pool:
        jobs = await ended(pool, 5)
        clock.pass_s(days * DAY_S)
        await pool.housekeeping.removal.clean()
        assert kept(pool) == set(jobs[5 - left :])


async def test_removal_of_old_jobs_does_not_block_submissions(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(pool_that_keeps(tmp_path, clock, "{ended_jobs: 0}")) as pool:
        jobs = await ended(pool, 2 * PRUNED)
        cleaning = asyncio.create_task(pool.housekeeping.removal.clean())
        while len(kept(pool)) == len(jobs):
            await asyncio.sleep(0)
        accepted = await pool.jobs.submit(SUSAN, sleeper())
        assert len(kept(pool)) >= len(jobs) - PRUNED
        await cleaning
        assert kept(pool) == set()
        assert pool.jobs.detail(SUSAN, accepted.id).job.id == accepted.id
