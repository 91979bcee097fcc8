"""A succeeded job shows where its results are if they could not be delivered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.jobs import NOT_DELIVERED
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(5))


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=runtime, clock=FakeClock())) as pool:
        yield pool


@pytest.mark.parametrize(
    ("end_text", "text", "remedy"),
    [
        (
            "its results could not be copied to /x (Read-only file system); the pool keeps them",
            "Its results could not be copied to /x (Read-only file system); the pool keeps them.",
            "Fetch them with `benchpool results {} --to FOLDER`.",
        ),
        (
            "its results could not be copied to /x (Disk quota exceeded); they are still in /y",
            "Its results could not be copied to /x (Disk quota exceeded); they are still in /y.",
            "Copy them from there before the job is removed, or ask an administrator to.",
        ),
        (
            "its results could not be sent: results hold 3 GiB",
            "Its results could not be sent: results hold 3 GiB.",
            "See the end of its log. Correct the cause and send it again.",
        ),
    ],
)
async def test_undelivered_results_are_reason_of_succeeded_job(
    pool: Pool, runtime: ScriptedRuntime, end_text: str, text: str, remedy: str
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    await reached(pool, job.id, State.RUNNING)
    runtime.end(worker, 0, EndedBy.ITSELF, text=end_text)
    await reached(pool, job.id, State.SUCCEEDED)
    reason = pool.jobs.detail(SUSAN, job.id).job.reason
    assert reason is not None
    assert (reason.code, reason.text) == (NOT_DELIVERED, text)
    assert reason.remedy == remedy.format(job.id[:8])


@pytest.mark.parametrize(
    "end_text", [None, "it did not end within its grace period and was killed"]
)
async def test_succeeded_job_has_no_reason_otherwise(
    pool: Pool, runtime: ScriptedRuntime, end_text: str | None
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    await reached(pool, job.id, State.RUNNING)
    runtime.end(worker, 0, EndedBy.ITSELF, text=end_text)
    await reached(pool, job.id, State.SUCCEEDED)
    assert pool.jobs.detail(SUSAN, job.id).job.reason is None
