"""A what-if starts from the pool as it is, including jobs that were just started."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.whatif import WhatIfQuestion
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
)
from benchpool_support.scripted import ScriptedRuntime, devices

CONFIGURATION = """
version: 1
projects:
  - {name: susan, quota: 2, members: [susan]}
  - {name: joe, quota: 2, members: [joe]}
"""
SWAPPED = CONFIGURATION.replace("susan, quota: 2", "susan, quota: 0").replace(
    "joe, quota: 2", "joe, quota: 4"
)


async def test_what_if_shows_just_started_job_as_preempted(tmp_path: Path) -> None:
    # No worker reports that it runs, so no pass follows the one that started the job.
    runtime = ScriptedRuntime(devices(4), start_at_once=False)
    pool = make_pool(tmp_path, runtime=runtime, configuration=load(CONFIGURATION))
    async with opened(pool):
        runs, waits = await asyncio.gather(
            pool.jobs.submit(SUSAN, sleeper(gpus=3)), pool.jobs.submit(JOE, sleeper(gpus=4))
        )
        await reached(pool, runs.id, State.STARTING)
        await decided(pool, waits.id)
        found = await pool.whatifs.ask(ADMIN, WhatIfQuestion(config=SWAPPED))
        (paused,) = [job for job in found.jobs if job.id == runs.id]
        assert (paused.before.state, paused.after.state) == ("runs", "waits")
        assert paused.after.preempted
