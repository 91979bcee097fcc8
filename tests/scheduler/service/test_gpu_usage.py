"""GPU use is measured, joined with holders, shown by rights, and disturbs nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from benchpool_scheduler.api.metrics import Traffic
from benchpool_scheduler.contract import GpuUse, LeaseRequest, State
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.housekeeping import metering
from benchpool_scheduler.telemetry import GpuSample, NoSampler, Sampling
from benchpool_scheduler.telemetry.sampler import HeldProcesses
from benchpool_scheduler.telemetry.samples import WorkerSample
from benchpool_support.clocks import FakeClock
from benchpool_support.measured import ScriptedSampler
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
)
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async

TICK_S = 60.0

REAL = [replace(device, simulated=False) for device in devices(9)]


def busy(share: float) -> Callable[[str, float], GpuSample]:
    def sample(gpu: str, now: float) -> GpuSample:
        return GpuSample(
            at=now,
            span_s=10.0,
            gpu=gpu,
            activity=share,
            memory_used_gib=41.0,
            memory_total_gib=80.0,
            power_w=250.0,
            temperature_c=55.0,
        )

    return sample


def made(
    state: Path, clock: FakeClock, sampler: ScriptedSampler | None = None, **more: Any
) -> Pool:
    more.setdefault("runtime", ScriptedRuntime(REAL))
    used_sampler = sampler or ScriptedSampler(busy(0.5))
    return make_pool(state, clock=clock, sampling=Sampling(used_sampler, TICK_S), **more)


async def looked(pool: Pool, clock: FakeClock, times: int = 1, every_s: float = 10.0) -> None:
    for _ in range(times):
        clock.pass_s(every_s)
        await pool.metering.look()


def held(rows: Sequence[GpuUse]) -> Mapping[str, GpuUse]:
    return {row.user: row for row in rows if row.user is not None}


async def test_samples_are_joined_with_gpu_holder(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(made(tmp_path, clock)) as pool:
        asked = LeaseRequest(user="joe", server="lab", spawn="s", gpus=1)
        lease = await pool.benches.reserve(HUB, asked)
        job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
        await reached(pool, job.id, State.RUNNING)
        begin = clock.now()
        await looked(pool, clock, 6)
        await pool.metering.settle()
        found = pool.metering.database.buckets(None, begin, clock.now(), 1, by_holder=True)
        by_user = {it.holder.user: it for it in found if it.begin >= begin - 60}
        mine, bench = by_user["susan"].holder, by_user["joe"].holder
        assert (mine.job, mine.attempt, mine.worker, mine.project) == (job.id, 1, 0, "susan")
        assert (bench.bench, bench.server, bench.job) == (lease.id, "lab", None)
        (total,) = pool.metering.database.totals_of(job.id)
        assert (total.covered_s, total.active_s) == (60.0, 30.0)


class ScriptedUse:
    """Fixed processor use of every bench: its total, and the part of the notebook server."""

    def __init__(self, used: float, by_server: float) -> None:
        self._used, self._by_server = used, by_server

    def sample_workers(self, held: Sequence[HeldProcesses], now: float) -> Sequence[WorkerSample]:
        return [
            WorkerSample(it.of, now, 10.0, 10.0 * self._used, first_cpu_s=10.0 * self._by_server)
            for it in held
        ]


@pytest.mark.parametrize(("used", "by_server", "active"), [(0.25, 0.25, 0.0), (0.75, 0.25, 0.5)])
async def test_simulated_gpu_activity_excludes_notebook_server(
    tmp_path: Path, used: float, by_server: float, active: float
) -> None:
    clock, runtime = FakeClock(), ScriptedRuntime(devices(9))
    sampling = Sampling(NoSampler(), TICK_S, workers=ScriptedUse(used, by_server))
    async with opened(make_pool(tmp_path, clock=clock, sampling=sampling, runtime=runtime)) as pool:
        await pool.benches.reserve(HUB, LeaseRequest(user="joe", server="", spawn="s", gpus=1))
        await looked(pool, clock, 2)
        (own,) = pool.gpu_use.gpus(JOE, mine=True)
        assert (own.activity, own.simulated) == (active, True)


async def test_gpu_use_is_public_and_names_are_private(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(made(tmp_path, clock)) as pool:
        await pool.benches.reserve(HUB, LeaseRequest(user="joe", server="", spawn="s", gpus=1))
        job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
        await reached(pool, job.id, State.RUNNING)
        await looked(pool, clock)
        assert set(held(pool.gpu_use.gpus(ADMIN))) == {"susan", "joe"}
        for caller in (SUSAN, JOE):
            rows = pool.gpu_use.gpus(caller)
            assert set(held(rows)) == {caller.name}
            assert [row.activity for row in rows] == [0.5] * 9
            text = repr(rows)
            other = "joe" if caller is SUSAN else job.id
            assert other not in text
            (own,) = pool.gpu_use.gpus(caller, mine=True)
            assert (own.user, own.memory_used_gib, own.memory_total_gib) == (caller.name, 41, 80)


async def test_idle_time_restarts_after_activity_or_gap(
    tmp_path: Path,
) -> None:
    clock, share = FakeClock(), [0.5]
    sampler = ScriptedSampler(lambda gpu, now: busy(share[0])(gpu, now))
    async with opened(made(tmp_path, clock, sampler)) as pool:
        await pool.benches.reserve(HUB, LeaseRequest(user="joe", server="", spawn="s", gpus=1))

        def idle_s() -> float | None:
            since = pool.gpu_use.gpus(JOE, mine=True)[0].idle_since
            return None if since is None else clock.now() - since.timestamp()

        await looked(pool, clock)
        assert idle_s() is None
        share[0] = 0.01
        await looked(pool, clock, 12)
        assert idle_s() == 120.0
        clock.pass_s(1000.0)
        assert pool.gpu_use.gpus(JOE, mine=True)[0].activity is None  # no current measurement
        await looked(pool, clock)
        assert idle_s() == 10.0
        share[0] = 0.5
        await looked(pool, clock)
        assert idle_s() is None


async def test_gpu_is_measured_once_for_all_readers(tmp_path: Path) -> None:
    clock, sampler = FakeClock(), ScriptedSampler(busy(0.5))
    async with opened(made(tmp_path, clock, sampler)) as pool:
        await looked(pool, clock)
        await until_async(lambda: sampler.calls >= 2)  # the pool's own first measurement
        before = sampler.calls
        for _ in range(50):
            pool.gpu_use.gpus(SUSAN)
            pool.figures.read()
        assert sampler.calls == before
    assert sampler.closed


@pytest.mark.expected_errors("GPU use could not be measured")
async def test_failing_sampler_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    def fail(gpu: str, now: float) -> GpuSample | None:
        raise RuntimeError("the driver fell over")

    clock = FakeClock()
    async with opened(made(tmp_path, clock, ScriptedSampler(fail))) as pool:
        await until_async(
            lambda: "the driver fell over" in pool.observed.now.problems.get("telemetry", "")
        )
        job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
        await reached(pool, job.id, State.RUNNING)
        assert pool.gpu_use.gpus(SUSAN)[0].activity is None


async def test_hanging_driver_is_reported_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metering, "HANGS_S", 0.01)
    answered = threading.Event()

    def hang(gpu: str, now: float) -> GpuSample | None:
        answered.wait()
        return None

    async with opened(made(tmp_path, FakeClock(), ScriptedSampler(hang))) as pool:
        try:
            await until_async(lambda: "telemetry" in pool.observed.now.problems)
            job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
            await reached(pool, job.id, State.RUNNING)
        finally:
            answered.set()


async def test_unwritable_telemetry_database_loses_no_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("", None, Exception("database or disk is full"))

    clock = FakeClock()
    async with opened(made(tmp_path, clock)) as pool:
        begin, database = clock.now(), pool.metering.database
        await pool.metering.settle()
        with monkeypatch.context() as full:
            full.setattr(database, "write", refuse)
            await looked(pool, clock, 3)
            await pool.metering.settle()
            problem = pool.observed.now.problems["telemetry-database"]
            assert "cannot be written" in problem
            assert "disk is full" in problem
            job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
            await reached(pool, job.id, State.RUNNING)
        await pool.metering.settle()
        assert "telemetry-database" not in pool.observed.now.problems
        found = database.buckets([REAL[0].uuid], begin, clock.now(), 1)
        assert sum(it.covered_s for it in found) >= 30.0


async def test_disabled_sampling_measures_nothing(tmp_path: Path) -> None:
    sampler = ScriptedSampler(busy(0.5))
    pool = make_pool(tmp_path, runtime=ScriptedRuntime(REAL), sampling=Sampling(sampler, 0.0))
    async with opened(pool):
        assert pool.gpu_use.gpus(SUSAN)[0].activity is None
        assert not pool.metering.database.buckets(None, 0.0, 2e9, 1)
    assert sampler.calls == 0


async def test_gpu_metrics_contain_no_user_or_job(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with opened(made(tmp_path, clock)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
        await reached(pool, job.id, State.RUNNING)
        await looked(pool, clock)
        text = Traffic().text(pool).decode()
    lines = [it for it in text.splitlines() if it.startswith("benchpool_gpu_")]
    assert len([it for it in lines if it.startswith("benchpool_gpu_activity_ratio{")]) == 9
    gpu = REAL[0]
    label = f'{{gpu="{gpu.index}",model="{gpu.model}",node="{gpu.node}",simulated="false"}}'
    assert f"benchpool_gpu_memory_used_bytes{label} 4.4023414784e+10" in lines
    assert f"benchpool_gpu_power_watts{label} 250.0" in lines
    assert not any("susan" in it or job.id in it for it in lines)


SPIN = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


@pytest.mark.slow
async def test_simulated_gpu_activity_follows_holder_processes(tmp_path: Path) -> None:
    """Uses real processes, whose processor time the kernel counts."""
    async with opened(make_pool(tmp_path, sampling=Sampling(NoSampler(), 1.0))) as pool:
        job = await pool.jobs.submit(SUSAN, python_job(SPIN, project="susan"))
        await reached(pool, job.id, State.RUNNING)
        rows = await until_async(
            lambda: pool.gpu_use.gpus(SUSAN),
            holds=lambda rows: any(row.activity for row in rows if row.mine),
        )
        (own,) = [row for row in rows if row.mine]
        assert own.simulated
        free = [row for row in rows if not row.mine and row.activity is not None]
        assert {row.activity for row in free} == {0.0}
        await pool.metering.settle()
        (worker,) = pool.metering.database.workers_of(job.id)
        assert worker.cpu_s > 0
        assert (worker.memory_peak_gib or 0) > 0
        (total,) = pool.metering.database.totals_of(job.id)
        assert total.simulated
