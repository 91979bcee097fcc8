"""Benches without recent activity in the Hub are counted separately, and the counts add up."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchpool_scheduler.contract import LeaseRequest
from benchpool_scheduler.hub import HubServer, StaticDirectory
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, HUB, JOE, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices

pytestmark = pytest.mark.asyncio

HOUR_S = 3600.0


async def test_bench_without_hub_activity_for_one_hour_is_idle(
    tmp_path: Path,
) -> None:
    clock, hub = FakeClock(), StaticDirectory()
    made = make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)), clock=clock, directory=hub)
    async with opened(made) as pool:
        for user in ("susan", "joe"):
            asked = LeaseRequest(user=user, server="", spawn="s", gpus=1)
            await pool.benches.reserve(HUB, asked)
        before = "9 GPUs: 2 held on benches, 1 kept free for benches, 6 free; no job waits."
        assert pool.views.status(ADMIN).text == before
        seen = clock.now()
        clock.pass_s(HOUR_S + 60)
        hub.known_servers = (
            HubServer("susan", "", last_active=seen),
            HubServer("joe", "", last_active=clock.now() - 60),
        )
        status = pool.views.status(ADMIN)
        assert status.text == (
            "9 GPUs: 1 held on benches, 1 held idle on benches, 1 kept free for benches, 6 free; "
            "no job waits."
        )
        (idle,) = [gpu for gpu in status.gpus if gpu.idle_since is not None]
        assert (idle.user, idle.idle_since) == ("susan", datetime.fromtimestamp(seen, UTC))
        assert [
            it.last_active.timestamp() for it in pool.benches.leases(JOE) if it.last_active
        ] == [clock.now() - 60]


async def test_bench_ignores_hub_activity_before_its_lease(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    hub = StaticDirectory(known_servers=(HubServer("susan", "", last_active=clock.now()),))
    clock.pass_s(5 * HOUR_S)
    made = make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)), clock=clock, directory=hub)
    async with opened(made) as pool:
        asked = LeaseRequest(user="susan", server="", spawn="s", gpus=1)
        await pool.benches.reserve(HUB, asked)
        assert "idle" not in pool.views.status(ADMIN).text
