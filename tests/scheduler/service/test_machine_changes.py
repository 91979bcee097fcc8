"""Changes of machines are shown on the runtime's event, before the next poll."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchpool_scheduler.contract import GpuState, State
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.housekeeping import slow_timer
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import PATIENCE_S, until_async


class HearingRuntime(ScriptedRuntime):
    """Runtime that reports when its machines have changed."""

    def __init__(self) -> None:
        super().__init__(devices(9))
        self.news = asyncio.Event()

    async def machines_changed(self) -> None:
        await self.news.wait()
        self.news.clear()


async def test_broken_gpu_is_shown_on_runtime_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_timer, "LOOK_S", 3600.0)
    runtime = HearingRuntime()
    store, people = SqliteStore(tmp_path / "scheduler"), StaticDirectory()
    pool = Pool(store, runtime, story(), state=tmp_path, directory=people)
    async with opened(pool), asyncio.timeout(PATIENCE_S):
        assert GpuState.BROKEN not in {gpu.state for gpu in pool.views.status(ADMIN).gpus}
        runtime.mark(runtime.gpus[0].uuid, DeviceState.BROKEN, "it fell off the bus")
        runtime.news.set()
        await until_async(lambda: pool.views.status(ADMIN).gpus[0].state is GpuState.BROKEN)


@pytest.mark.parametrize("state", [DeviceState.BROKEN, DeviceState.FOREIGN])
async def test_reason_counts_temporarily_unusable_gpus(tmp_path: Path, state: DeviceState) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        blocker = await pool.jobs.submit(JOE, sleeper(gpus=1))
        await reached(pool, blocker.id, State.RUNNING)
        job = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
        for gpu in runtime.gpus[-4:]:
            runtime.mark(gpu.uuid, state, "away")
        await pool.housekeeping.look()
        reason = (await decided(pool, job.id)).reason
        assert reason is not None
        assert reason.text.endswith(", and one has 4 more that cannot be assigned now.")
        assert reason.remedy.startswith("It can start when these are available again; or submit")
        for gpu in runtime.gpus[-4:]:
            runtime.mark(gpu.uuid, DeviceState.USABLE)
        await pool.housekeeping.look()
        (worker,) = await runtime.until_launched(1)
        runtime.end(worker)
        await reached(pool, job.id, State.RUNNING)
