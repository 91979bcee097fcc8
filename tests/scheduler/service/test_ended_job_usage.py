"""Measured use is kept with an ended job, and outlives the samples."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job, JobUsage, State
from benchpool_scheduler.errors import NotFound, Refused
from benchpool_scheduler.service import Pool
from benchpool_scheduler.telemetry import GpuSample, NoSampler, Sampling
from benchpool_support.clocks import FakeClock
from benchpool_support.measured import ScriptedSampler
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices

TICK_S = 10.0
REAL = [replace(device, simulated=False, memory_mib=81_920) for device in devices(9)]


def idle(gpu: str, now: float) -> GpuSample:
    return GpuSample(
        at=now, span_s=TICK_S, gpu=gpu, activity=0.0, memory_used_gib=41.0, energy_j=700.0
    )


def made(state: Path, clock: FakeClock, every_s: float = 3600.0) -> Pool:
    """Return a pool that is measured only on request, with a nominal interval of 10 s."""
    sampler = ScriptedSampler(idle)
    pool = make_pool(
        state, clock=clock, runtime=ScriptedRuntime(REAL), sampling=Sampling(sampler, every_s)
    )
    pool.metering.tick_s = TICK_S
    return pool


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def pool(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Pool]:
    async with opened(made(tmp_path, clock)) as running:
        yield running


async def ran(pool: Pool, clock: FakeClock, ticks: int = 40) -> Job:
    """Run a job for the given number of samples; return it after its end."""
    assert isinstance(pool.runtime, ScriptedRuntime)
    job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
    await reached(pool, job.id, State.RUNNING)
    for _ in range(ticks):
        clock.pass_s(TICK_S)
        await pool.metering.look()
    (worker,) = (it for it in pool.runtime.launched if it.job == job.id)
    pool.runtime.end(worker, 0, at=clock.now())
    await reached(pool, job.id, State.SUCCEEDED)
    return job


async def noted(pool: Pool, job: Job) -> JobUsage:
    """Wait until the measured use of a job is stored, and return it."""
    await until_job(pool, job.id, lambda _: pool.jobs.usage(ADMIN, job.id).measured is not None)
    return pool.jobs.usage(SUSAN, job.id)


async def test_usage_is_available_after_job_end(pool: Pool, clock: FakeClock) -> None:
    job = await ran(pool, clock)
    found = await noted(pool, job)
    assert found.rule == "never-used"
    assert [(it.name, it.text) for it in found.figures] == [
        ("GPU busy", "0 %"),
        ("GPU memory", "41.0 GiB of 80"),
        ("Energy", "7.8 Wh"),
    ]
    assert (found.coverage, found.simulated) == (1.0, False)
    assert pool.jobs.detail(SUSAN, job.id).usage == found


async def test_usage_survives_restart_and_loss_of_samples(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(made(tmp_path, clock)) as pool:
        job = await ran(pool, clock)
        before = await noted(pool, job)
    for file in (tmp_path / "scheduler").glob("telemetry.sqlite*"):
        file.unlink()
    async with opened(made(tmp_path, clock)) as pool:
        assert pool.jobs.usage(SUSAN, job.id) == before


async def test_usage_missed_by_restart_is_computed_later(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(jobs: object) -> None:
        pass

    first = made(tmp_path, clock)
    async with opened(first) as pool:
        monkeypatch.setattr(pool.use.job_measuring, "keep", killed)
        job = await ran(pool, clock)
        await pool.metering.settle()
        assert pool.jobs.usage(SUSAN, job.id).measured is None
    async with opened(made(tmp_path, clock)) as pool:
        assert (await noted(pool, job)).rule == "never-used"


async def test_usage_of_invisible_job_is_not_found(pool: Pool, clock: FakeClock) -> None:
    job = await ran(pool, clock, 1)
    with pytest.raises(NotFound):
        pool.jobs.usage(JOE, job.id)


async def test_usage_of_running_job_is_refused(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    await reached(pool, job.id, State.RUNNING)
    with pytest.raises(Refused, match="reported when it has ended") as refused:
        pool.jobs.usage(SUSAN, job.id)
    assert refused.value.code == "not-ended"
    assert pool.jobs.detail(SUSAN, job.id).usage is None


async def test_usage_without_measurements_reports_none(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, sampling=Sampling(NoSampler(), 0.0))) as pool:
        job = await pool.jobs.submit(SUSAN, python_job("pass"))
        await reached(pool, job.id, State.SUCCEEDED)
        await asyncio.sleep(0)
        found = pool.jobs.usage(SUSAN, job.id)
        assert (found.text, found.figures) == ("Its resource use was not measured.", [])


async def test_unreadable_telemetry_leaves_job_intact(
    pool: Pool, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(job: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(pool.metering.database, "totals_of", fails)
    job = await ran(pool, clock, 1)
    await pool.use.job_measuring.keep([job.id])
    assert pool.jobs.usage(SUSAN, job.id).measured is None
