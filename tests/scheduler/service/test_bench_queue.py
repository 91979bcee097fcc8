"""The bench queue: positions are kept, shown, given up and served in order (R2)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchpool_scheduler.contract import (
    LineRequest,
    State,
)
from benchpool_scheduler.core.benches.bench_queue import ABSENT_S, FORGOTTEN_S
from benchpool_scheduler.errors import Refused, Unavailable
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.benches.reservations import GONE_S
from benchpool_support.bench_lines import asked_until_held, lease, lending, line, place
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    make_pool,
    opened,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.slow


async def test_bench_queue_is_first_come_first_served(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        held = lease(await pool.benches.wait_in_line(HUB, line("susan", gpus=2)))
        jemma = place(await pool.benches.wait_in_line(HUB, line("jemma")))
        zoe = place(await pool.benches.wait_in_line(HUB, line("zoe", gpus=2)))
        assert (jemma.position, zoe.position, zoe.length) == (1, 2, 2)
        assert zoe.reason.code == "benches-full"
        assert zoe.reason.numbers == {"asked": 2, "free": 0, "held": 2, "servers": 1}
        assert zoe.estimated_start is None
        await pool.benches.release(HUB, held.id)
        assert (await asked_until_held(pool, line("jemma"))).id == jemma.id
        assert place(await pool.benches.wait_in_line(HUB, line("zoe", gpus=2))).position == 1
        await pool.benches.release(HUB, jemma.id)
        assert (await asked_until_held(pool, line("zoe", gpus=2))).id == zoe.id


async def test_bench_queue_order_survives_restart(tmp_path: Path) -> None:
    clock, runtime = FakeClock(), ScriptedRuntime(devices(2))
    pool = make_pool(tmp_path, configuration=lending(), runtime=runtime, clock=clock)
    async with opened(pool):
        await pool.benches.wait_in_line(HUB, line("susan", gpus=2))
        jemma = place(await pool.benches.wait_in_line(HUB, line("jemma")))
        clock.pass_s(5)
        zoe = place(await pool.benches.wait_in_line(HUB, line("zoe")))
    again = make_pool(
        tmp_path, configuration=lending(), runtime=ScriptedRuntime(devices(2)), clock=clock
    )
    async with opened(again) as pool:
        back = LineRequest(lease=line("zoe").lease, since=zoe.since)
        assert place(await pool.benches.wait_in_line(HUB, back)).position == 1
        back = LineRequest(lease=line("jemma").lease, since=jemma.since)
        assert place(await pool.benches.wait_in_line(HUB, back)).position == 1
        back = LineRequest(lease=line("zoe").lease, since=zoe.since)
        assert place(await pool.benches.wait_in_line(HUB, back)).position == 2


async def test_lease_of_forgotten_start_is_released(tmp_path: Path) -> None:
    clock, directory = FakeClock(), StaticDirectory(known_servers=())
    pool = make_pool(
        tmp_path,
        configuration=lending(),
        directory=directory,
        clock=clock,
        runtime=ScriptedRuntime(devices(2)),
    )
    async with opened(pool):
        held = lease(await pool.benches.wait_in_line(HUB, line("susan", gpus=2)))
        place(await pool.benches.wait_in_line(HUB, line("jemma")))
        # The Hub is killed and restarts without that start.
        await pool.benches.release(HUB, held.id)
        await until_async(lambda: pool.benches.leases(HUB))
        for passed in (0.0, GONE_S + 1):
            assert [one.user for one in pool.benches.leases(HUB)] == ["jemma"]
            clock.pass_s(passed)
            await pool.housekeeping.ask_hub()
        assert pool.benches.leases(HUB) == []


async def test_bench_queue_shows_users_only_their_own_entry(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        assert pool.benches.line(ADMIN) == []
        held = lease(await pool.benches.wait_in_line(HUB, line("susan", gpus=2)))
        for user in ("jemma", "zoe"):
            place(await pool.benches.wait_in_line(HUB, line(user, server="big")))
        everybody = pool.benches.line(ADMIN)
        assert [(it.user, it.server, it.gpus, it.place.position) for it in everybody] == [
            ("jemma", "big", 1, 1),
            ("zoe", "big", 1, 2),
        ]
        assert everybody[0].place.reason.code == "benches-full"
        assert [it.user for it in pool.benches.line(Caller("zoe"))] == ["zoe"]
        assert pool.benches.line(JOE) == []
        assert pool.views.status(JOE).bench_line == 2
        await pool.benches.release(HUB, held.id)
        await until_async(lambda: not pool.views.status(JOE).bench_line)
        assert pool.benches.line(ADMIN) == []


async def test_silent_client_is_skipped_then_removed_from_bench_queue(
    tmp_path: Path,
) -> None:
    clock, runtime = FakeClock(), ScriptedRuntime(devices(2))
    pool = make_pool(tmp_path, configuration=lending(), runtime=runtime, clock=clock)
    async with opened(pool):
        held = lease(await pool.benches.wait_in_line(HUB, line("susan", gpus=2)))
        await pool.benches.wait_in_line(HUB, line("zoe", gpus=2))
        clock.pass_s(ABSENT_S + 1)
        assert place(await pool.benches.wait_in_line(HUB, line("jemma"))).position == 1
        assert place(await pool.benches.wait_in_line(HUB, line("zoe", gpus=2))).position == 1
        clock.pass_s(FORGOTTEN_S + 1)
        assert place(await pool.benches.wait_in_line(HUB, line("jemma"))).position == 1
        assert place(await pool.benches.wait_in_line(HUB, line("zoe", gpus=2))).position == 2
        await pool.benches.release(HUB, held.id)


async def test_client_leaving_bench_queue_gets_no_lease(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        held = lease(await pool.benches.wait_in_line(HUB, line("susan", gpus=2)))
        left = place(await pool.benches.wait_in_line(HUB, line("jemma")))
        await pool.benches.release(HUB, left.id)
        await pool.benches.release(HUB, held.id)
        job = await pool.jobs.submit(JOE, sleeper())
        await reached(pool, job.id, State.RUNNING)
        assert pool.benches.leases(ADMIN) == []


async def test_held_request_does_not_requeue_departed_client(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        held = lease(await pool.benches.wait_in_line(HUB, line("susan", gpus=2)))
        asked = LineRequest(lease=line("jemma").lease, hold_s=10)
        left = place(await pool.benches.wait_in_line(HUB, line("jemma")))
        question = asyncio.ensure_future(pool.benches.wait_in_line(HUB, asked))
        await asyncio.sleep(0)
        await pool.benches.release(HUB, left.id)
        await pool.benches.release(HUB, held.id)
        await question
        assert pool.benches.leases(ADMIN) == []


async def test_direct_reservation_cannot_skip_bench_queue(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        jobs = [await pool.jobs.submit(JOE, sleeper()) for _ in range(2)]
        await runtime.until_launched(2)
        await pool.benches.wait_in_line(HUB, line("zoe", gpus=2))
        first, second = [worker for worker, _ in await runtime.until_noticed(2)]
        runtime.end(first, 143)
        await until_job(pool, first.job, lambda job: job.state is State.QUEUED)
        with pytest.raises(Unavailable, match=r"free: 0 on one .* the servers before it"):
            await pool.benches.reserve(HUB, line("jemma").lease)
        waiting = asyncio.ensure_future(asked_until_held(pool, line("zoe", gpus=2)))
        runtime.end(second, 143)
        assert len((await waiting).gpus) == 2
        assert len(jobs) == 2


async def test_small_bench_request_uses_gpus_too_few_for_larger(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        await pool.benches.wait_in_line(HUB, line("susan"))
        place(await pool.benches.wait_in_line(HUB, line("zoe", gpus=2)))
        assert lease(await pool.benches.wait_in_line(HUB, line("jemma"))).gpus == ["GPU-1"]


async def test_bench_queue_refuses_request_over_quota(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        with pytest.raises(Refused) as caught:
            await pool.benches.wait_in_line(HUB, line("jemma", gpus=2))
        assert caught.value.code == "build-quota"


async def test_bench_start_estimate_needs_enough_ended_leases(tmp_path: Path) -> None:
    clock, runtime = FakeClock(), ScriptedRuntime(devices(2))
    pool = make_pool(tmp_path, configuration=lending(), runtime=runtime, clock=clock)
    async with opened(pool):
        for number in range(5):
            held = lease(
                await pool.benches.wait_in_line(HUB, line("susan", gpus=2, spawn=str(number)))
            )
            clock.pass_s(600)
            await pool.benches.release(HUB, held.id)
        await pool.benches.wait_in_line(HUB, line("susan", gpus=2, spawn="last"))
        clock.pass_s(100)
        estimate = place(await pool.benches.wait_in_line(HUB, line("jemma"))).estimated_start
        assert estimate is not None
        assert estimate.likely is not None
        assert estimate.earliest is not None
        now = datetime.fromtimestamp(clock.now(), UTC)
        assert (estimate.earliest - now, estimate.likely - now) == (timedelta(seconds=500),) * 2
        assert estimate.latest is None  # five leases are too few for a 90 % bound
        assert estimate.basis == "learned from 5 earlier bench leases"


async def test_later_server_start_inherits_bench_queue_position(
    tmp_path: Path,
) -> None:
    # The killed Hub's request is still open when the restarted Hub sends its own.
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        other = lease(await pool.benches.wait_in_line(HUB, line("zoe", gpus=2)))
        asked = LineRequest(lease=line(gpus=2, spawn="1").lease, hold_s=10)
        before = asyncio.ensure_future(pool.benches.wait_in_line(HUB, asked))
        await until_waiting(pool)
        second = line(gpus=2, spawn="2")
        assert (await pool.benches.wait_in_line(HUB, second)).place is not None
        after = asyncio.ensure_future(asked_until_held(pool, second))
        await pool.benches.release(HUB, other.id)
        assert len((await after).gpus) == 2
        assert (await before).lease is None


async def until_waiting(pool: Pool) -> None:
    await until_async(lambda: pool.benches.line(ADMIN))
