"""Use of a pool in GPU-hours: recorded as it happens, and shown by rights."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.contract.use import UseBy, UseClass, UseQuery, UseReport
from benchpool_scheduler.runtime import DeviceState, EndedBy
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.telemetry import GpuSample, HeldSample, Holder
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JEMMA,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import STARTED, ScriptedRuntime, devices

HOUR = 3600.0

POOL = """
version: 1
build: {users: {susan: 1}}
projects:
  - {name: vision, quota: 2, members: [susan, joe], leads: [susan]}
  - {name: speech, quota: 1, members: [jemma]}
prices: {currency: EUR, gpu_hour: {A100: 2}}
"""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(STARTED)


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(4))


def the_pool(state: Path, clock: FakeClock, runtime: ScriptedRuntime, **more: Any) -> Pool:
    return make_pool(state, clock=clock, configuration=story(POOL), runtime=runtime, **more)


async def report(pool: Pool, caller: Caller = ADMIN, by: UseBy = UseBy.CLASS) -> UseReport:
    return await pool.use.report(caller, UseQuery(by=by))


def hours(found: UseReport) -> dict[UseClass, float]:
    return {one: round(h, 3) for one, h in found.total.gpu_h.items() if h > 1e-3}


async def test_use_report_adds_up_to_all_gpu_time(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await report(pool)  # begins the record
        clock.pass_s(HOUR)
        assert hours(await report(pool)) == {UseClass.FREE: 3.0, UseClass.RESERVED: 1.0}
        lease = await pool.benches.reserve(HUB, LeaseRequest("susan", "", "1", 1))
        sent = await pool.jobs.submit(JOE, sleeper(gpus=2))
        await reached(pool, sent.id, State.RUNNING)
        clock.pass_s(HOUR)
        now = await report(pool)
        assert hours(now) == {
            UseClass.FREE: 4.0,
            UseClass.RESERVED: 1.0,
            UseClass.NOT_MEASURED: 3.0,
        }
        assert now.total.held_gpu_h == pytest.approx(3)
        assert now.total.cost == pytest.approx(6)
        await pool.benches.release(HUB, lease.id)
        clock.pass_s(HOUR)
        by_user = await report(pool, by=UseBy.USER)
        held = {row.name: round(row.held_gpu_h, 3) for row in by_user.rows}
        assert held == {"joe": 4.0, "susan": 1.0, None: 0.0}
        assert [row.rank for row in by_user.rows] == [1, 2, None]
        assert sum(hours(by_user).values()) == pytest.approx(4 * 3)


async def test_use_report_uses_time_zone_of_budgets(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    text = story(POOL + "gpu_hours: {time_zone: Pacific/Kiritimati}\n")
    made = make_pool(tmp_path, clock=clock, configuration=text, runtime=runtime)
    async with opened(made) as pool:
        found = await report(pool)
    assert found.time_zone == "Pacific/Kiritimati"
    assert found.begin.utcoffset() == timedelta(hours=14)


async def test_use_reports_are_queued_fairly_per_user(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    answered: list[str] = []

    async def ask(caller: Caller) -> None:
        await report(pool, caller)
        answered.append(caller.name)

    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await asyncio.gather(*(ask(JOE) for _ in range(20)), ask(SUSAN), ask(ADMIN))
    assert answered[:3] == [JOE.name, SUSAN.name, ADMIN.name]
    assert answered[3:] == [JOE.name] * 19


async def test_use_report_counts_unstarted_worker_as_starting(
    tmp_path: Path, clock: FakeClock
) -> None:
    runtime = ScriptedRuntime(devices(4), start_at_once=False)
    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await report(pool)
        sent = await pool.jobs.submit(JEMMA, sleeper())
        (worker,) = await runtime.until_launched(1)
        clock.pass_s(HOUR)
        runtime.begin(worker, clock.now())
        await reached(pool, sent.id, State.RUNNING)
        clock.pass_s(HOUR)
        found = hours(await report(pool))
        assert (found[UseClass.STARTING], found[UseClass.NOT_MEASURED]) == (1.0, 1.0)


async def test_use_report_classifies_time_by_samples(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await report(pool)
        sent = await pool.jobs.submit(JOE, sleeper())
        await reached(pool, sent.id, State.RUNNING)
        (held,) = pool.ledger.counters.holders
        clock.pass_s(HOUR)
        holder = Holder(job=sent.id, attempt=1, worker=0, user="joe", project="vision")
        pool.use.telemetry.write(
            [
                HeldSample(GpuSample(STARTED + at + 10, 10.0, held, activity=0.25), holder)
                for at in range(0, 1800, 10)
            ]
        )
        found = await report(pool, JOE)
        assert hours(found) == {
            UseClass.COMPUTING: 0.125,
            UseClass.IDLE_TRAINING: 0.375,
            UseClass.NOT_MEASURED: 0.5,
        }
        assert found.total.coverage == pytest.approx(0.5)
        assert any(note.startswith("Samples cover 50 %") for note in found.notes)


async def test_use_report_shows_foreign_and_broken_gpus(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await report(pool)
        runtime.mark(runtime.gpus[0].uuid, DeviceState.FOREIGN)
        runtime.mark(runtime.gpus[1].uuid, DeviceState.BROKEN)
        await pool.housekeeping.look()
        clock.pass_s(HOUR)
        found = hours(await report(pool))
        assert (found[UseClass.FOREIGN], found[UseClass.BROKEN]) == (1.0, 1.0)
        assert sum(found.values()) == pytest.approx(4)


async def test_use_report_keeps_job_time_across_restart(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    first = the_pool(tmp_path, clock, runtime)
    await first.open()
    await report(first)
    sent = await first.jobs.submit(JOE, sleeper(gpus=2))
    await reached(first, sent.id, State.RUNNING)
    clock.pass_s(HOUR)
    await first.close()
    clock.pass_s(HOUR)
    async with opened(the_pool(tmp_path, clock, runtime)) as again:
        found = hours(await report(again))
        assert found == {
            UseClass.NOT_MEASURED: 4.0,
            UseClass.FREE: 1.0,
            UseClass.RESERVED: 1.0,
            UseClass.NOT_RECORDED: 2.0,
        }


async def test_use_report_works_without_lost_telemetry(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await report(pool)
        clock.pass_s(HOUR)
    for file in (tmp_path / "scheduler").glob("telemetry.sqlite*"):
        file.unlink()
    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        assert hours(await report(pool)) == {}
        clock.pass_s(HOUR)
        found = await report(pool)
        assert sum(hours(found).values()) == pytest.approx(4)
        assert any(note.startswith("The record begins on") for note in found.notes)


async def test_use_report_notes_removed_records_only_when_relevant(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    async def removed(pool: Pool, days: int) -> bool:
        begin = datetime.fromtimestamp(clock.now(), UTC) - timedelta(days=days, seconds=1)
        found = await pool.use.report(ADMIN, UseQuery(begin=begin))
        return any("records of older jobs were removed" in note for note in found.notes)

    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await report(pool)
        clock.pass_s(HOUR)
        assert not await removed(pool, 90), "the pool itself is an hour old"
        clock.pass_s(40 * 24 * HOUR)
        assert not await removed(pool, 30), "so long they are kept"
        assert await removed(pool, 35)


async def test_use_report_rows_depend_on_rights(
    tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    async with opened(the_pool(tmp_path, clock, runtime)) as pool:
        await report(pool)  # begins the record
        for who in (JOE, JEMMA):
            sent = await pool.jobs.submit(who, sleeper())
            await reached(pool, sent.id, State.RUNNING)
        clock.pass_s(HOUR)
        seen = {}
        for who in (ADMIN, SUSAN, JOE, JEMMA):
            found = await report(pool, who, UseBy.USER)
            seen[who.name] = (found.sight, [row.name for row in found.rows])
        assert seen == {
            "ada": ("pool", ["jemma", "joe", None]),
            "susan": ("projects", ["joe"]),
            "joe": ("own", ["joe"]),
            "jemma": ("own", ["jemma"]),
        }
        waited = await report(pool, JOE, UseBy.PROJECT)
        assert waited.rows[0].waits is not None
        assert (waited.rows[0].name, waited.rows[0].waits.jobs) == ("vision", 1)


async def test_use_report_keeps_waits_after_retention(tmp_path: Path, clock: FakeClock) -> None:
    runtime = ScriptedRuntime(devices(4), start_at_once=False)
    text = POOL + "retention: {ended_days: 1, use_days: 9}\n"
    made = make_pool(tmp_path, clock=clock, configuration=story(text), runtime=runtime)
    async with opened(made) as pool:
        await report(pool)
        victim = await pool.jobs.submit(JEMMA, sleeper(gpus=3, name="borrows"))
        (first,) = await runtime.until_launched(1)
        runtime.begin(first, clock.now())
        await reached(pool, victim.id, State.RUNNING)
        clock.pass_s(HOUR)
        claims = await pool.jobs.submit(JOE, sleeper(gpus=2, name="owed"))
        ((worker, _),) = await runtime.until_noticed(1)
        clock.pass_s(20)
        runtime.end(worker, 143, EndedBy.NOTICE, at=clock.now())
        launched = await runtime.until_launched(2)
        clock.pass_s(100)
        runtime.begin(launched[1], clock.now())
        await reached(pool, claims.id, State.RUNNING)
        clock.pass_s(HOUR)
        await pool.jobs.act(JEMMA, victim.id, "cancel")
        runtime.end(launched[1], 0, at=clock.now())
        await reached(pool, claims.id, State.SUCCEEDED)
        before = {by: figures(await week(pool, by)) for by in (UseBy.USER, UseBy.PROJECT)}
        assert before[UseBy.USER]["joe"] == (120.0, 0, 1)
        assert before[UseBy.USER]["jemma"] == (0.0, 1, 0)
        clock.pass_s(2 * 24 * HOUR)
        await pool.housekeeping.removal.clean()
        assert list(pool.ledger.jobs()) == []
        assert {by: figures(await week(pool, by)) for by in before} == before
        assert figures(await week(pool, UseBy.USER, JOE)) == {"joe": (120.0, 0, 1)}
        rows = (await pool.use.fleet.week(ADMIN)).rows
        given = {name: (row.preemptions_given, row.preemptions_taken) for name, row in rows.items()}
        assert (given["vision"], given["speech"]) == ((0, 1), (1, 0))
    again = make_pool(tmp_path, clock=clock, configuration=story(text), runtime=runtime)
    async with opened(again) as pool:
        found = await week(pool, UseBy.USER)
        assert figures(found) == before[UseBy.USER]
        assert any("records of older jobs were removed" in note for note in found.notes)
        assert not any("Waits and preemptions" in note for note in found.notes)


async def week(pool: Pool, by: UseBy, caller: Caller = ADMIN) -> UseReport:
    now = datetime.fromtimestamp(pool.observed.settings.clock.now(), UTC)
    return await pool.use.report(caller, UseQuery(by=by, begin=now - timedelta(days=7)))


def figures(found: UseReport) -> dict[str | None, tuple[float, int, int]]:
    """Return by row the longest wait in seconds, and the preemptions given and taken."""
    return {
        row.name: (
            round((row.waits.p95_s if row.waits else 0.0), 1),
            row.preemptions_given,
            row.preemptions_taken,
        )
        for row in found.rows
        if row.name is not None
    }
