"""Expected cost of a sweep: from a given length of a trial, from similar jobs, or unknown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.sweeps import (
    EarlyStopping,
    ListedValues,
    SweepPlan,
    SweepRequest,
    SweptValues,
)
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached
from benchpool_support.scripted import ScriptedRuntime, devices

SEEDS: dict[str, SweptValues] = {"seed": ListedValues(list(range(64)))}
TRAIN = JobSubmission(entry=CommandEntry(["python3", "train.py", "--seed={seed}"]), name="rates")
UNKNOWN = "64 trials. How long one takes is not known; set --trial-hours (trial_hours in Python"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(9), start_at_once=False)


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        yield pool


async def ran(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock, hours: float, code: int, name: str
) -> None:
    """Let a job of susan run for these hours and end with this code."""
    job = await pool.jobs.submit(SUSAN, replace(TRAIN, name=name, retries=0))
    worker = (await runtime.until_launched(len(runtime.launched) + 1))[-1]
    runtime.begin(worker, clock.now())
    await reached(pool, job.id, State.RUNNING)
    clock.pass_s(hours * 3600)
    runtime.end(worker, code, EndedBy.ITSELF, at=clock.now())
    await reached(pool, job.id, State.FAILED if code else State.SUCCEEDED)


async def test_cost_is_learned_from_similar_jobs_that_succeeded(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    asked = SweepRequest(TRAIN, SweepPlan(SEEDS, max_concurrent=1))
    await ran(pool, runtime, clock, 0.01, 1, "rates")
    await ran(pool, runtime, clock, 7.0, 0, "other")
    assert (await preview(pool, asked)).startswith(UNKNOWN)
    for hours, name in ((2.0, "rates"), (3.0, "rates #5"), (1.0, "rates #6")):
        await ran(pool, runtime, clock, hours, 0, name)
    assert await preview(pool, asked) == (
        "64 trials, about 128.0 GPU-hours; 5 d 8 h if 1 runs at a time. "
        "Based on 3 similar jobs of yours, a trial takes 2 h."
    )
    found = await pool.sweeps.preview(SUSAN, asked)
    assert (found.trial_hours, found.gpu_hours) == (2.0, 128.0)
    larger = replace(asked, submission=replace(TRAIN, gpus=2))
    assert (await preview(pool, larger)).startswith(UNKNOWN), "jobs of another size do not count"
    given = replace(asked, trial_hours=0.5)
    assert (await preview(pool, given)) == (
        "64 trials, about 32.0 GPU-hours; 1 d 8 h if 1 runs at a time."
    )
    of_joe = replace(asked, submission=replace(TRAIN, project=None))
    assert (await pool.sweeps.preview(JOE, of_joe)).text.startswith(UNKNOWN)


async def preview(pool: Pool, asked: SweepRequest) -> str:
    """Return the text of susan's preview."""
    return (await pool.sweeps.preview(SUSAN, asked)).text


async def test_early_stopping_lowers_cost_if_steps_are_given(pool: Pool) -> None:
    stopped = SweepPlan(SEEDS, metric="loss", max_concurrent=2, early_stopping=EarlyStopping(1))
    asked = SweepRequest(TRAIN, stopped, trial_hours=1)
    assert await preview(pool, asked) == (
        "64 trials, about 64.0 GPU-hours; 1 d 8 h if 2 run at a time. "
        "Early stopping may lower this; --trial-steps shows by how much."
    )
    assert await preview(pool, replace(asked, trial_steps=27)) == (
        "64 trials, about 7.11 GPU-hours with early stopping, 64.0 without; "
        "3 h 33 min if 2 run at a time."
    )
    found = await pool.sweeps.preview(SUSAN, replace(asked, trial_steps=27))
    assert found.gpu_hours == pytest.approx(64 / 9)
