"""A due bench is parked where the site allows it; if that is impossible, it is released."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import AuditQuery, ParkStep
from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchCommand, BenchIdleness
from benchpool_scheduler.core.benches.idle import IdleStep, IdleWatch
from benchpool_scheduler.service import Pool
from benchpool_support.bench_lines import line
from benchpool_support.idle_site import SeeingRuntime
from benchpool_support.parking_pool import LENDING, ParkingPool, parking_pool, stands
from benchpool_support.pools import ADMIN, HUB, SUSAN
from benchpool_support.scripted_cuda import ScriptedMachine

ACTING = LENDING + "idle_benches: {act: true}\n"


@pytest.fixture
def stage(
    tmp_path: Path, machine: ScriptedMachine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ParkingPool]:
    with parking_pool(tmp_path, machine, monkeypatch, SeeingRuntime, ACTING) as stage:
        yield stage


def report(pool: Pool, lease: str) -> BenchIdleness:
    """Report an idle server that can release its GPUs."""
    activity = BenchActivity(
        kernels=1, busy_kernels=0, executions=3, terminal_programs=0, gives_up=True
    )
    return pool.idle.report(SUSAN, lease, activity)


async def due(pool: Pool) -> str:
    """Lease a bench to susan that was idle for the whole limit; return the lease ID."""
    lease = (await pool.benches.reserve(HUB, line().lease)).id
    coming = report(pool, lease)
    assert (coming.parks, coming.act) == (True, "release")
    now = pool.idle.watcher.now()
    bench = pool.idle.watcher.benches[lease]
    bench.watch = IdleWatch(IdleStep.DUE, at=now, since=now - 3600, known_s=3600)
    return lease


async def acts(pool: Pool) -> list[tuple[str, str]]:
    page = await pool.audit.read(ADMIN, AuditQuery())
    return [
        (it.actor, it.action) for it in reversed(page.records) if it.action.startswith("bench-")
    ]


async def test_idle_bench_gpu_is_lent_without_loss(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        lease = await due(pool)
        await pool.idle.giver.advance()
        pool.idle.notify_owners()
        assert report(pool, lease).command is BenchCommand.NONE
        (text,) = pool.observed.now.idle_benches.values()
        assert "its GPU is being lent, and its kernel keeps" in text
        await stands(pool, lease, ParkStep.PARKED)
        assert pool.ledger.lease(lease) is None
        assert stage.machine.state(stage.kernel.pid) == "checkpointed"
        pool.idle.watcher.meet()
        await pool.idle.giver.advance()
        assert await acts(pool) == [("benchpool", "bench-park"), ("benchpool", "bench-parked")]


async def test_unparkable_kernel_loses_gpu_by_next_action(
    stage: ParkingPool,
) -> None:
    with subprocess.Popen(["sleep", "600"]) as program:
        stage.machine.put(program.pid, "running", 2**30)
        stage.on_bench = frozenset({program.pid})
        async with stage.pool() as pool:
            lease = await due(pool)
            await pool.idle.giver.advance()
            assert report(pool, lease).command is BenchCommand.RELEASE
            assert await acts(pool) == [("benchpool", "bench-release")]
            assert stage.machine.state(stage.kernel.pid) == "running"
        program.kill()
