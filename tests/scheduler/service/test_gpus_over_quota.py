"""GPUs over quota are decided once: the pool's GPUs and the jobs' tags agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import GpuState, Job, State
from benchpool_scheduler.service import Pool
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
    story,
)

pytestmark = pytest.mark.slow

POOL = """
version: 1
projects:
  - {name: susan, quota: 1, members: [susan]}
  - {name: joe, quota: 1, members: [joe]}
policy: {grace_s: 60}
"""


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready")
while not os.path.exists({leave!r}):
    time.sleep(0.05)
sys.exit(1)
"""
"""Program of a job that ends only when a file exists."""


def over(pool: Pool, job: Job) -> list[bool]:
    """Return for each GPU of a job whether it is shown as over quota."""
    shown = [gpu for gpu in pool.views.status(ADMIN).gpus if gpu.job == job.id]
    return [gpu.state is GpuState.TRAIN_OVER_QUOTA for gpu in shown]


def tagged(pool: Pool, job: Job) -> bool:
    return pool.jobs.detail(ADMIN, job.id).job.over_quota


async def test_quota_covers_higher_priority_job_on_gpus_and_tags(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path, configuration=story(POOL), gpus=2)) as pool:
        older = await pool.jobs.submit(SUSAN, sleeper(name="older", priority=10))
        await reached(pool, older.id, State.RUNNING)
        assert (over(pool, older), tagged(pool, older)) == ([False], False)
        newer = await pool.jobs.submit(SUSAN, sleeper(name="newer", priority=90))
        await reached(pool, newer.id, State.RUNNING)
        assert (over(pool, older), tagged(pool, older)) == ([True], True)
        assert (over(pool, newer), tagged(pool, newer)) == ([False], False)
        assert pool.views.status(ADMIN).counts[GpuState.TRAIN_OVER_QUOTA] == 1


async def test_partly_covered_job_shows_rest_as_over_quota(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path, configuration=story(POOL), gpus=3)) as pool:
        large = await pool.jobs.submit(SUSAN, sleeper(name="large", gpus=3))
        await reached(pool, large.id, State.RUNNING)
        assert (sorted(over(pool, large)), tagged(pool, large)) == ([False, True, True], True)


async def test_preempted_over_quota_job_stays_marked_until_end(
    tmp_path: Path,
) -> None:
    leave = tmp_path / "leave"
    stubborn = python_job(STUBBORN.format(leave=str(leave)), name="second")
    async with opened(make_pool(tmp_path, configuration=story(POOL), gpus=2)) as pool:
        first = await pool.jobs.submit(SUSAN, sleeper(name="first"))
        await reached(pool, first.id, State.RUNNING)  # it would lose more work than the later job
        second = await pool.jobs.submit(SUSAN, stubborn)
        await reached(pool, second.id, State.RUNNING)
        await pool.logs.wait(SUSAN, second.id, offset=0)
        mine = await pool.jobs.submit(JOE, sleeper(name="mine"))
        leaving = await reached(pool, second.id, State.PAUSING)
        assert leaving.over_quota
        assert (over(pool, second), over(pool, first)) == ([True], [False])
        leave.touch()
        await reached(pool, mine.id, State.RUNNING)
        assert (over(pool, mine), tagged(pool, mine), over(pool, second)) == ([False], False, [])
