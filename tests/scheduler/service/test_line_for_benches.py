"""Who waits for a bench has a place in line: kept, told, given up and served in turn (R2)."""

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


async def test_those_in_line_are_served_by_the_time_of_their_first_question(
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


async def test_after_a_restart_everybody_has_the_same_place(tmp_path: Path) -> None:
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


async def test_gpus_given_to_a_start_that_the_hub_forgot_are_given_back(tmp_path: Path) -> None:
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
        # The Hub is killed: it forgets that start, and comes back without it.
        await pool.benches.release(HUB, held.id)
        await until_async(lambda: pool.benches.leases(HUB))
        for passed in (0.0, GONE_S + 1):
            assert [one.user for one in pool.benches.leases(HUB)] == ["jemma"]
            clock.pass_s(passed)
            await pool.housekeeping.ask_hub()
        assert pool.benches.leases(HUB) == []


async def test_administrators_see_who_waits_for_a_bench_and_others_themselves(
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


async def test_who_does_not_ask_any_more_is_passed_over_and_then_forgotten(
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


async def test_who_leaves_the_line_calls_nothing_back(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        held = lease(await pool.benches.wait_in_line(HUB, line("susan", gpus=2)))
        left = place(await pool.benches.wait_in_line(HUB, line("jemma")))
        await pool.benches.release(HUB, left.id)
        await pool.benches.release(HUB, held.id)
        job = await pool.jobs.submit(JOE, sleeper())
        await reached(pool, job.id, State.RUNNING)
        assert pool.benches.leases(ADMIN) == []


async def test_a_question_that_is_still_held_does_not_bring_back_who_has_left(
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


async def test_nobody_in_line_is_overtaken_by_one_who_does_not_wait(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        jobs = [await pool.jobs.submit(JOE, sleeper()) for _ in range(2)]
        await runtime.until_launched(2)
        await pool.benches.wait_in_line(HUB, line("zoe", gpus=2))
        first, second = [worker for worker, _ in await runtime.until_noticed(2)]
        runtime.end(first, 143)
        await until_job(pool, first.job, lambda job: job.state is State.QUEUED)
        with pytest.raises(Unavailable, match=r"free: 0 on one .* those in line have had"):
            await pool.benches.reserve(HUB, line("jemma").lease)
        waiting = asyncio.ensure_future(asked_until_held(pool, line("zoe", gpus=2)))
        runtime.end(second, 143)
        assert len((await waiting).gpus) == 2
        assert len(jobs) == 2


async def test_a_small_wish_gets_what_a_larger_one_before_it_cannot_use(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        await pool.benches.wait_in_line(HUB, line("susan"))
        place(await pool.benches.wait_in_line(HUB, line("zoe", gpus=2)))
        assert lease(await pool.benches.wait_in_line(HUB, line("jemma"))).gpus == ["GPU-1"]


async def test_nobody_waits_in_line_for_more_than_the_quota(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        with pytest.raises(Refused) as caught:
            await pool.benches.wait_in_line(HUB, line("jemma", gpus=2))
        assert caught.value.code == "build-quota"


async def test_an_estimate_is_given_once_enough_servers_have_stopped(tmp_path: Path) -> None:
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
        told = place(await pool.benches.wait_in_line(HUB, line("jemma"))).estimated_start
        assert told is not None
        assert told.likely is not None
        assert told.earliest is not None
        now = datetime.fromtimestamp(clock.now(), UTC)
        assert (told.earliest - now, told.likely - now) == (timedelta(seconds=500),) * 2
        assert told.latest is None  # five leases are too few to say nine in ten
        assert told.basis == "learned from 5 earlier bench leases"


async def test_a_later_start_of_a_server_takes_its_place_over_from_one_that_still_asks(
    tmp_path: Path,
) -> None:
    # The Hub was killed while it asked; another asks before the first connection is known to end.
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
