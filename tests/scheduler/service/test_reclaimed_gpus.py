"""GPUs over quota that were reclaimed from a project in the last week."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import ProjectQuota, State
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices

pytestmark = pytest.mark.asyncio


def given(pool: Pool) -> dict[str, tuple[int, int]]:
    projects: list[ProjectQuota] = pool.views.status(ADMIN).projects
    return {it.name: (it.reclaimed_gpus, it.pauses) for it in projects if it.pauses}


async def test_reclaimed_gpus_are_counted_for_one_week(tmp_path: Path) -> None:
    clock, runtime = FakeClock(), ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        mine = [await pool.jobs.submit(SUSAN, sleeper(gpus=2)) for _ in range(3)]
        for job in mine:
            await reached(pool, job.id, State.RUNNING)
        assert given(pool) == {}
        theirs = await pool.jobs.submit(JOE, sleeper(gpus=2))
        ((worker, _),) = await runtime.until_noticed(1)
        runtime.end(worker, at=clock.now())
        await reached(pool, theirs.id, State.RUNNING)
        assert given(pool) == {"susan": (2, 1), "research": (2, 1)}
        clock.pass_s(7 * 24 * 3600 + 1)
        assert given(pool) == {}
