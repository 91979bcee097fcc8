"""A parked bench lends its GPU, and its kernel is restored on that GPU."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import ParkStep, State
from benchpool_scheduler.errors import NotFound, Refused
from benchpool_scheduler.runtime.local.parking import machine_facts, trial
from benchpool_support.bench_lines import line
from benchpool_support.parking_pool import GIB, LENDING, ParkingPool, parking_pool, stands
from benchpool_support.pools import HUB, JOE, SUSAN, reached, sleeper
from benchpool_support.scripted_cuda import GPU, OTHER, ScriptedMachine
from benchpool_support.waiting import until_async


@pytest.fixture
def stage(
    tmp_path: Path, machine: ScriptedMachine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ParkingPool]:
    with parking_pool(tmp_path, machine, monkeypatch) as stage:
        yield stage


async def test_parked_gpu_is_lent_and_returns_after_borrower_saves(
    stage: ParkingPool,
) -> None:
    async with stage.pool() as pool:
        lease = await stage.parked(pool)
        assert stage.machine.state(stage.kernel.pid) == "checkpointed"
        assert pool.ledger.lease(lease) is None
        jobs = [await pool.jobs.submit(JOE, sleeper()) for _ in range(2)]
        await stage.runtime.until_launched(2)
        holder = pool.ledger.counters.holders[GPU]
        assert holder in {job.id for job in jobs}
        coming = await pool.reservations.parking.unpark(SUSAN, lease)
        assert coming.step is ParkStep.RETURNING
        ((worker, notice),) = await stage.runtime.until_noticed(1)
        assert (worker.job, notice.for_) == (holder, "benches")
        found = await stands(pool, lease, ParkStep.RETURNING)
        assert found is not None
        assert "is being paused, which takes up to 20 s" in found.text
        assert stage.machine.state(stage.kernel.pid) == "checkpointed"
        stage.runtime.end(worker, 143)
        await stands(pool, lease, None)
        assert stage.machine.state(stage.kernel.pid) == "running"
        back = pool.ledger.lease(lease)
        assert back is not None
        assert back.gpus == (GPU,)
        queued = await reached(pool, holder, State.QUEUED)
        assert [it.rule for it in queued.preemptions] == ["R3"]
        assert pool.auditor.audit() == []


async def test_restore_waits_until_nvml_reports_free_memory(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        lease = await stage.parked(pool)
        stage.machine.others[GPU] = {1: 79 * GIB}  # memory left by a job
        await pool.reservations.parking.unpark(SUSAN, lease)
        await until_async(lambda: GPU in pool.ledger.leased)
        assert stage.machine.state(stage.kernel.pid) == "checkpointed"
        stage.machine.others.clear()
        await stands(pool, lease, None)
        assert stage.machine.state(stage.kernel.pid) == "running"


async def test_restarted_scheduler_finds_parked_bench_from_driver(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        lease = await stage.parked(pool)
    async with stage.pool() as pool:
        assert await stands(pool, lease, ParkStep.PARKED) is not None
        await pool.reservations.parking.unpark(SUSAN, lease)
        await stands(pool, lease, None)
        assert pool.ledger.lease(lease) is not None
        assert stage.machine.state(stage.kernel.pid) == "running"


async def test_parked_gpu_stays_in_quota_and_reserved_for_bench(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        await stage.parked(pool)
        other = await pool.benches.reserve(HUB, line("jemma").lease)
        assert other.gpus == [OTHER]
        with pytest.raises(Refused, match="0 held and 1 lent by parked benches"):
            await pool.benches.reserve(HUB, line(server="b").lease)


async def test_failed_restore_is_reported_and_not_retried(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        lease = await stage.parked(pool)
        stage.machine.faults(restore="breaks")
        await pool.reservations.parking.unpark(SUSAN, lease)
        found = await stands(pool, lease, ParkStep.LOST)
        assert found is not None
        assert "Restart the kernel" in found.text
        assert "susan" in pool.observed.now.problems["parking"]
        assert pool.ledger.lease(lease) is not None
        stage.kernel.kill()
        stage.kernel.wait()
        await stands(pool, lease, None)


async def test_kernel_exit_while_parked_keeps_gpu_of_server(
    stage: ParkingPool,
) -> None:
    async with stage.pool() as pool:
        lease = await stage.parked(pool)
        await pool.jobs.submit(JOE, sleeper())
        await pool.jobs.submit(JOE, sleeper())
        await stage.runtime.until_launched(2)
        stage.kernel.kill()
        stage.kernel.wait()
        ((worker, _),) = await stage.runtime.until_noticed(1)
        stage.runtime.end(worker, 143)
        await stands(pool, lease, None)
        assert pool.ledger.leased[GPU].id == lease
        assert pool.observed.now.parked == {}


async def test_server_exit_while_parked_removes_parked_bench(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        lease = await stage.parked(pool)
        await pool.benches.release(HUB, lease)
        assert await stands(pool, lease, None) is None
        assert (pool.observed.now.parked, pool.ledger.leased) == ({}, {})
    stage.machine.put(stage.kernel.pid, "running", 3 * GIB)
    async with stage.pool() as pool:
        lease = await stage.parked(pool)
        stage.directory.known_servers = ()
        stage.kernel.kill()
        stage.kernel.wait()
        await stands(pool, lease, None)
        assert (pool.observed.now.parked, pool.ledger.leased) == ({}, {})


async def test_another_kernel_of_bench_reclaims_gpu(stage: ParkingPool) -> None:
    with subprocess.Popen(["sleep", "600"]) as second:
        stage.on_bench = frozenset({second.pid})
        async with stage.pool() as pool:
            lease = await stage.parked(pool)
            stage.machine.put(second.pid, "running", GIB)
            await stands(pool, lease, None)
            assert pool.ledger.lease(lease) is not None
        second.kill()


async def test_parking_is_refused_with_failed_condition(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        lease = (await pool.benches.reserve(HUB, line().lease)).id
        with pytest.raises(NotFound):
            await pool.reservations.parking.park(JOE, lease)
        stage.machine.others[GPU] = {1: GIB}
        with pytest.raises(Refused, match=r"one process: number of processes on its GPU: 2"):
            await pool.reservations.parking.park(SUSAN, lease)
        assert stage.machine.state(stage.kernel.pid) == "running"
        assert pool.ledger.lease(lease) is not None


async def test_shared_memory_is_no_obstacle_without_trial(
    stage: ParkingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An H200 with driver 580.159.04 maps 2 MiB in each process; only a trial measures this."""
    monkeypatch.setattr(machine_facts, "shared_memory_of", lambda _: 2 * 2**20)
    stage.state.joinpath(trial.FILE).unlink()
    async with stage.pool() as pool:
        lease = (await pool.benches.reserve(HUB, line().lease)).id
        with pytest.raises(Refused, match="benchpool doctor --try-parking") as refused:
            await pool.reservations.parking.park(SUSAN, lease)
        assert "memory" not in refused.value.message


@pytest.mark.parametrize(
    ("key", "message"), [("parking", "build.parking"), ("lend_idle", "build.lend_idle")]
)
async def test_parking_is_off_by_default_and_requires_lending(
    stage: ParkingPool, key: str, message: str
) -> None:
    stage.configuration = LENDING.replace(f"{key}: true", f"{key}: false")
    async with stage.pool() as pool:
        lease = (await pool.benches.reserve(HUB, line().lease)).id
        with pytest.raises(Refused, match=message) as refused:
            await pool.reservations.parking.park(SUSAN, lease)
        assert refused.value.code == "parking-off"
        with pytest.raises(Refused, match=message):
            pool.reservations.parking.benches(SUSAN)
