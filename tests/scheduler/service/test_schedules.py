"""Schedules: each time becomes a job, is skipped or caught up; no time is submitted twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.schedules import Schedule, ScheduleRequest, SchedulesQuery
from benchpool_scheduler.errors import InvalidInput, NotFound
from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.safe_mode import SafeMode
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached
from benchpool_support.scripted import ScriptedRuntime, devices

TRAIN = JobSubmission(
    entry=CommandEntry(["python3", "train.py"]), name="nightly", output_dir="/data/out"
)
NIGHTLY = ScheduleRequest(TRAIN, "night at 2", "Europe/Berlin")
NIGHT_S = 24 * 3600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(9))


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        yield pool


async def at_its_next_time(pool: Pool, clock: FakeClock, schedule: Schedule) -> Schedule:
    coming = pool.schedules.show(SUSAN, schedule.id).next[0].timestamp()
    clock.pass_s(coming - clock.now())
    await pool.schedules.runner.look()
    return pool.schedules.show(SUSAN, schedule.id)


async def test_schedule_skips_run_while_previous_job_is_unfinished(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    assert (begun.cron, len(begun.next), begun.last) == ("0 2 * * *", 5, [])
    assert {at.hour for at in begun.next} == {2}
    await pool.schedules.runner.look()
    assert runtime.launched == {}, "nothing before its time"
    first = await at_its_next_time(pool, clock, begun)
    await pool.schedules.runner.look()
    (worker,) = await runtime.until_launched(1)
    assert [(it.outcome, it.job) for it in first.last] == [("sent", worker.job)]
    folder = pool.jobs.submission(SUSAN, worker.job).output_dir
    assert folder == f"/data/out/{begun.next[0]:%Y-%m-%d-%H%M}"
    second = await at_its_next_time(pool, clock, begun)
    assert [it.outcome for it in second.last] == ["skipped", "sent"]
    assert second.last[0].text == f"The previous job, {worker.job[:8]}, had not ended."
    runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
    await reached(pool, worker.job, State.SUCCEEDED)
    third = await at_its_next_time(pool, clock, begun)
    assert [(it.outcome, it.state) for it in third.last[1:]] == [
        ("skipped", None),
        ("sent", "succeeded"),
    ]
    assert third.last[0].outcome == "sent"


async def test_schedule_catches_up_once_after_downtime(
    tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    clock.pass_s(3 * NIGHT_S)
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        await pool.schedules.runner.look()
        await runtime.until_launched(1)
        shown = pool.schedules.show(SUSAN, begun.id)
        assert [it.outcome for it in shown.last] == ["sent", "missed", "missed"]
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        await pool.schedules.runner.look()
        assert [it.outcome for it in pool.schedules.show(SUSAN, begun.id).last] == [
            "sent",
            "missed",
            "missed",
        ]
        assert len(runtime.launched) == 1


@pytest.mark.parametrize(
    ("zone", "day", "when"),
    [
        ("Europe/Berlin", "2026-03-29", "night at 2:30"),
        ("Europe/Berlin", "2026-10-25", "night at 2:30"),
        ("Australia/Lord_Howe", "2026-04-05", "night at 1:45"),
        ("Australia/Lord_Howe", "2026-10-04", "night at 2:15"),
    ],
)
@pytest.mark.parametrize("stopped_h", [0, 5])
async def test_schedule_runs_once_when_clock_changes_during_restart(
    tmp_path: Path, runtime: ScriptedRuntime, zone: str, day: str, when: str, stopped_h: int
) -> None:
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    clock = FakeClock(midnight.timestamp())
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        begun = await pool.schedules.begin(SUSAN, ScheduleRequest(TRAIN, when, zone))
        if not stopped_h:  # the service restarts right after it has sent the job
            await at_its_next_time(pool, clock, begun)
    clock.pass_s(stopped_h * 3600)
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        for _ in range(12):
            await pool.schedules.runner.look()
            clock.pass_s(3600)
        (run,) = pool.schedules.show(SUSAN, begun.id).last
        assert (run.outcome, run.at) == ("sent", begun.next[0])
        assert len(await runtime.until_launched(1)) == 1


async def test_schedule_pauses_while_owner_is_unknown(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    known = pool.observed.now
    pool.observed.put(known.with_users((HubUser("joe"),)))
    clock.pass_s(NIGHT_S)
    await pool.schedules.runner.look()
    shown = pool.schedules.show(SUSAN, begun.id)
    assert shown.text == "Paused: The Hub no longer knows susan."
    assert (shown.next, shown.last, runtime.launched) == ([], [], {})
    pool.observed.put(known)
    await pool.schedules.runner.look()
    assert pool.schedules.show(SUSAN, begun.id).paused is None
    await at_its_next_time(pool, clock, begun)
    await runtime.until_launched(1)


async def held_time(pool: Pool, clock: FakeClock) -> tuple[Schedule, Observations]:
    """Return a schedule whose first time came while the pool accepted no jobs, and the pool."""
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    known = pool.observed.now
    pool.observed.put(replace(known, safe_mode=SafeMode(lost="The database is damaged.")))
    shown = await at_its_next_time(pool, clock, begun)
    assert [(it.outcome, it.state) for it in shown.last] == [("sent", None)]
    assert "accepts no new work now" in shown.last[0].text
    return shown, known


async def test_time_is_sent_late_when_pool_accepts_jobs_again(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    held, known = await held_time(pool, clock)
    pool.observed.put(known)
    clock.pass_s(3600)
    for _ in range(2):
        await pool.schedules.runner.look()
    (worker,) = await runtime.until_launched(1)
    (sent,) = pool.schedules.show(SUSAN, held.id).last
    assert (sent.at, sent.outcome, sent.job, sent.text) == (
        held.last[0].at, "sent", worker.job, "",
    )  # fmt: skip


async def test_unaccepted_time_is_refused_at_next_time(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    held, known = await held_time(pool, clock)
    pool.observed.put(known)
    shown = await at_its_next_time(pool, clock, held)
    assert [it.outcome for it in shown.last] == ["sent", "refused"]
    assert len(await runtime.until_launched(1)) == 1


async def test_unaccepted_time_is_not_sent_after_pause(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    held, known = await held_time(pool, clock)
    await pool.schedules.pause(SUSAN, held.id)
    await pool.schedules.runner.look()
    pool.observed.put(known)
    await pool.schedules.resume(SUSAN, held.id)
    await pool.schedules.runner.look()
    assert [it.outcome for it in pool.schedules.show(SUSAN, held.id).last] == ["refused"]
    assert runtime.launched == {}


async def test_paused_schedule_submits_nothing_and_does_not_catch_up(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    assert (await pool.schedules.pause(SUSAN, begun.id)).next == []
    clock.pass_s(2 * NIGHT_S)
    await pool.schedules.runner.look()
    await pool.schedules.resume(SUSAN, begun.id)
    await pool.schedules.runner.look()
    assert pool.schedules.show(SUSAN, begun.id).last == []
    await at_its_next_time(pool, clock, begun)
    await runtime.until_launched(1)
    await pool.schedules.remove(SUSAN, begun.id)
    assert pool.schedules.select(SUSAN, SchedulesQuery()) == []


async def test_schedule_shows_refused_submission(pool: Pool, clock: FakeClock) -> None:
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    gone = pool.schedules.book.get(begun.id)
    assert gone is not None
    await pool.schedules.book.put(
        type(gone)(
            **{
                **{name: getattr(gone, name) for name in gone.__struct_fields__},
                "submission": JobSubmission(entry=TRAIN.entry, project="gone"),
            }
        )
    )
    shown = await at_its_next_time(pool, clock, begun)
    assert shown.last[0].outcome == "refused"
    assert "gone" in shown.last[0].text


@pytest.mark.parametrize(
    ("when", "zone", "message"),
    [
        ("full moon", "UTC", "is not a time"),
        ("night at 25", "UTC", "is not a time"),
        ("0 2 30 2 *", "UTC", "Bad day-of-month"),
        ("* * * * *", "UTC", "sends every 60 s"),
        ("night at 2", "Middle/Earth", "There is no time zone"),
    ],
)
async def test_invalid_schedule_times_are_refused(
    pool: Pool, when: str, zone: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        pool.schedules.preview(SUSAN, ScheduleRequest(TRAIN, when, zone))


async def test_schedule_of_another_user_is_not_found(pool: Pool) -> None:
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    with pytest.raises(NotFound):
        pool.schedules.show(JOE, begun.id)
    assert begun.created == datetime.fromtimestamp(begun.created.timestamp(), UTC)
