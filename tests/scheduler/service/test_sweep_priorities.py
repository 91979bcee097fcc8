"""Trials go behind single jobs of their project, and make room for them (R15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.sweeps import (
    BELOW_SINGLE_JOBS,
    TASK,
    ListedValues,
    SweepPlan,
    SweepRequest,
)
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, story, waiting
from benchpool_support.scripted import ScriptedRuntime, devices

LAB = """
version: 1
build: {reserve: 0}
projects: [{name: lab, quota: 2, limit: 2, members: [susan, joe]}]
"""
TRAIN = JobSubmission(entry=CommandEntry(["python3", "train.py"]), project="lab", name="rates")
ARRAY = SweepPlan({TASK: ListedValues(list(range(200)))}, max_concurrent=200, array=True)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(2))


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock) -> AsyncIterator[Pool]:
    made = make_pool(tmp_path, configuration=story(LAB), runtime=runtime, clock=clock)
    async with opened(made) as pool:
        yield pool


async def test_single_job_of_another_user_replaces_running_task_of_array(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    array = await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, ARRAY))
    await runtime.until_launched(2)
    single = await pool.jobs.submit(JOE, TRAIN)
    ((task, notice),) = await runtime.until_noticed(1)
    assert (notice.kind, pool.jobs.detail(SUSAN, task.job).job.priority) == ("pause", 40)
    runtime.end(task, 75, EndedBy.NOTICE, at=clock.now())
    await reached(pool, single.id, State.RUNNING)
    found = await pool.sweeps.show(SUSAN, array.id)
    assert {row.state for row in found.trials} == {"open"}
    await waiting(pool, task.job)


async def test_trials_of_sweep_with_higher_priority_keep_their_gpus(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    sent = JobSubmission(TRAIN.entry, project="lab", priority=50 + BELOW_SINGLE_JOBS)
    await pool.sweeps.begin(SUSAN, SweepRequest(sent, ARRAY))
    await runtime.until_launched(2)
    single = await pool.jobs.submit(JOE, TRAIN)
    await waiting(pool, single.id)
    assert runtime.notices == []
