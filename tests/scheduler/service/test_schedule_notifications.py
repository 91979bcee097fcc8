"""Notifications about schedules that submit nothing: a refusal, a pause, or a missing owner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.notifications import NewAddress, NotificationChange
from benchpool_scheduler.contract.schedules import Schedule, ScheduleRequest
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.webhooks import Receiver, receiving

TRAIN = JobSubmission(entry=CommandEntry(["python3", "train.py"]), name="nightly")
NIGHTLY = ScheduleRequest(TRAIN, "night at 2", "Europe/Berlin")
SECRET = "a secret that nobody reads"
SUSAN_AND_ADA = (HubUser("susan"), HubUser("ada", admin=True))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def pool(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Pool]:
    facts = {"kinds": ["https"], "hosts": ["127.0.0.1"]}
    (tmp_path / "notifications.yaml").write_text(json.dumps(facts))
    users = StaticDirectory(SUSAN_AND_ADA)
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock, directory=users)) as pool:
        yield pool


async def subscribe(pool: Pool, receiver: Receiver, who: Caller) -> None:
    await pool.notifier.change(who, NotificationChange(add=NewAddress(receiver.url, SECRET)))


async def received(pool: Pool, receiver: Receiver, number: int) -> list[tuple[str, str]]:
    pool.deliveries.seen(pool.observed.now)
    found = await asyncio.to_thread(receiver.wait_for, number)
    return [pair for one in found for pair in zip(one.events, one.texts, strict=True)]


async def at_its_next_time(pool: Pool, clock: FakeClock, schedule: Schedule) -> Schedule:
    coming = pool.schedules.show(SUSAN, schedule.id).next[0].timestamp()
    clock.pass_s(coming - clock.now())
    await pool.schedules.runner.look()
    return pool.schedules.show(SUSAN, schedule.id)


async def test_first_schedule_refusal_notifies_owner(
    pool: Pool, clock: FakeClock, receiver: Receiver
) -> None:
    await subscribe(pool, receiver, SUSAN)
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    kept = pool.schedules.book.get(begun.id)
    assert kept is not None
    lost = structs.replace(kept, submission=structs.replace(TRAIN, project="lost"))
    await pool.schedules.book.put(lost)
    first = await at_its_next_time(pool, clock, begun)
    name = f"Schedule nightly ({begun.id[:8]})"
    refused = ("schedule", f"{name} sent no job at its time: {first.last[0].text}")
    assert await received(pool, receiver, 1) == [refused]
    second = await at_its_next_time(pool, clock, begun)
    assert [it.outcome for it in second.last] == ["refused", "refused"]
    clock.pass_s(601)
    await pool.schedules.pause(ADMIN, begun.id)
    paused = ("schedule", f"{name} sends nothing until it is resumed: ada paused it.")
    assert await received(pool, receiver, 2) == [refused, paused]


async def test_pause_by_owner_sends_no_notification(
    pool: Pool, clock: FakeClock, receiver: Receiver
) -> None:
    await subscribe(pool, receiver, SUSAN)
    mine = await pool.schedules.begin(SUSAN, NIGHTLY)
    await pool.schedules.pause(SUSAN, mine.id)
    other = await pool.schedules.begin(SUSAN, structs.replace(NIGHTLY, name="other"))
    await pool.schedules.pause(ADMIN, other.id)
    ((event, text),) = await received(pool, receiver, 1)
    assert (event, text.split()[1]) == ("schedule", "other")
    await pool.schedules.resume(ADMIN, other.id)
    again = pool.schedules.book.get(other.id)
    assert again is not None
    assert again.paused_at is None


async def test_missing_schedule_owner_notifies_administrators(
    pool: Pool, receiver: Receiver
) -> None:
    await subscribe(pool, receiver, ADMIN)
    begun = await pool.schedules.begin(SUSAN, NIGHTLY)
    known = pool.observed.now
    pool.observed.put(known.with_users((HubUser("ada", admin=True),)))
    await pool.schedules.runner.look()
    name = f"Schedule nightly ({begun.id[:8]}) of susan"
    assert await received(pool, receiver, 1) == [
        ("schedule", f"{name} sends nothing: The Hub no longer knows susan.")
    ]
