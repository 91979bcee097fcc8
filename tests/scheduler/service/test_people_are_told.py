"""People are told by webhook what becomes of their jobs, once, through restarts and faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.notifications import (
    NewAddress,
    NotificationChange,
    NotificationEvent,
)
from benchpool_scheduler.core.fairness.gpu_hours import HourAccount, HourBudget
from benchpool_scheduler.errors import Forbidden, InvalidInput, Refused, TooMany
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.notifications import kept
from benchpool_scheduler.runtime import DeviceState, Runtime
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.ledger.monthly_hours import MonthlyHours
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    story,
)
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.webhooks import Receiver, receiving

pytestmark = pytest.mark.slow

LED = """
version: 1
projects:
  - {name: vision, quota: 2, members: [susan], leads: [joe]}
"""
SECRET = "a secret that nobody reads"
USERS = (HubUser("susan"), HubUser("joe"), HubUser("ada", admin=True))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def pool_of(state: Path, runtime: Runtime | None = None, **site: object) -> Pool:
    facts = {"kinds": ["https"], "hosts": ["127.0.0.1"], **site}
    (state / "notifications.yaml").write_text(json.dumps(facts))
    return make_pool(
        state, directory=StaticDirectory(USERS), runtime=runtime, configuration=story(LED)
    )


async def subscribe(pool: Pool, receiver: Receiver) -> None:
    await pool.notifier.change(
        SUSAN, NotificationChange(add=NewAddress(receiver.url, SECRET), wait_s=0)
    )


async def fails(pool: Pool, name: str = "train") -> str:
    job = await pool.jobs.submit(SUSAN, python_job("raise SystemExit(3)", name=name))
    await reached(pool, job.id, State.FAILED)
    return job.id


async def came(receiver: Receiver, number: int) -> list[str]:
    found = await asyncio.to_thread(receiver.wait_for, number)
    return [event for one in found for event in one.events]


async def written(state: Path, id_: str) -> None:
    """Wait until it is on disk that a message was told."""
    file = state / "scheduler" / kept.TOLD
    async with asyncio.timeout(30):
        while not file.exists() or id_ not in file.read_text():
            await asyncio.sleep(0.02)


async def test_a_failure_is_told_once_and_a_restart_tells_it_not_again(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        await pool.notifier.change(SUSAN, NotificationChange(events=[NotificationEvent.FAILED]))
        job = await fails(pool)
        assert await came(receiver, 1) == ["failed"]
        await written(tmp_path, f"{job}-failed")
        assert pool.notifier.settings(SUSAN).addresses[0].reached is not None
    file = tmp_path / "scheduler" / kept.TOLD
    file.write_text(json.dumps({**json.loads(file.read_text()), "sent": {}}))
    async with opened(pool_of(tmp_path)) as pool:
        await fails(pool, "later")
        await came(receiver, 2)
    assert [len(one.texts) for one in receiver.came] == [1, 1]
    assert "Job later" in receiver.came[1].texts[0]


async def test_what_happened_while_nothing_could_be_sent_is_told_after_the_restart(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
    (tmp_path / "notifications.yaml").write_text("{}")
    silent = make_pool(tmp_path, directory=StaticDirectory(USERS))
    async with opened(silent) as pool:
        await fails(pool)
    assert receiver.came == []
    async with opened(pool_of(tmp_path)) as pool:
        assert sorted(await came(receiver, 1)) == ["failed", "started"]


async def test_a_receiver_that_fails_is_asked_again_with_the_same_id(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.statuses += [500, 503]
    async with opened(pool_of(tmp_path)) as pool:
        pool.deliveries.again_s = (0.0, 0.01, 0.01)
        await subscribe(pool, receiver)
        job = await fails(pool)
        await came(receiver, 3)
        await written(tmp_path, f"{job}-")
    first = receiver.came[0].headers["X-Benchpool-Id"]
    assert [one.headers["X-Benchpool-Id"] for one in receiver.came[:3]] == [first] * 3


async def test_one_that_stays_away_is_given_up_and_said_on_the_page(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.statuses += [500] * 9
    async with opened(pool_of(tmp_path)) as pool:
        pool.deliveries.again_s = (0.0, 0.01)
        await subscribe(pool, receiver)
        job = await fails(pool)
        await written(tmp_path, f"{job}-")
        (address,) = pool.notifier.settings(SUSAN).addresses
    assert address.failed == "127.0.0.1 answered with status 500."


async def test_many_ends_are_no_storm(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        for name in ("one", "two", "three"):
            job = await fails(pool, name)
        await came(receiver, 1)
        await written(tmp_path, "-")
        assert pool.jobs.detail(SUSAN, job).job.state is State.FAILED
        assert len(receiver.came) == 1


async def test_a_broken_gpu_is_told_to_administrators_and_to_the_site_alone(
    tmp_path: Path, receiver: Receiver
) -> None:
    runtime = ScriptedRuntime(devices(4))
    with receiving() as of_the_site:
        site = of_the_site.url.replace("http:", "json:")
        async with opened(pool_of(tmp_path, runtime, pool=[site])) as pool:
            was_one = Caller("susan", admin=True)
            for who, path in ((ADMIN, "ada"), (was_one, "susan")):
                new = NewAddress(receiver.url.replace("hook", path), SECRET)
                await pool.notifier.change(who, NotificationChange(add=new))
            runtime.mark("GPU-1", DeviceState.BROKEN, "it fell off the bus")
            await pool.housekeeping.see_machines()
            assert await came(receiver, 1) == ["gpu-broken"]
            (told,) = await asyncio.to_thread(of_the_site.wait_for, 1)
            async with asyncio.timeout(30):
                while pool.notifier.settings(ADMIN).addresses[0].reached is None:
                    await asyncio.sleep(0.02)
            await pool.housekeeping.see_machines()
            assert pool.notifier.settings(SUSAN).addresses[0].reached is None
    assert b"is broken: it fell off the bus." in told.body
    assert len(receiver.came) == 1


async def test_a_budget_that_is_used_up_is_told_to_the_leads(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        new = NewAddress(receiver.url, SECRET)
        await pool.notifier.change(JOE, NotificationChange(add=new))
        account = HourAccount("project", "vision", HourBudget(hard=90), 91.0)
        hours = MonthlyHours("2026-12-01", {("project", "vision"): account})
        pool.observed.put(replace(pool.observed.now, hours=hours))
        assert await came(receiver, 1) == ["budget"]
    assert receiver.came[0].texts == [
        "The project vision has used up its 90 GPU-hours of this month: new jobs of it start from "
        "2026-12-01 on."
    ]


async def test_secrets_are_never_told_again(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        (shown,) = pool.notifier.settings(SUSAN).addresses
        assert shown.shown == "http://127.0.0.1/…"
        assert pool.notifier.settings(JOE).addresses == []
        assert pool.notifier.settings(HUB).addresses == []
    file = tmp_path / "scheduler" / kept.SUBSCRIPTIONS
    assert file.stat().st_mode & 0o077 == 0


async def test_who_may_not_is_refused(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path, per_hour=1)) as pool:
        with pytest.raises(Forbidden, match="Only users"):
            await pool.notifier.change(HUB, NotificationChange(wait_s=5))
        with pytest.raises(Refused, match="no address"):
            await pool.notifier.test(SUSAN)
        await subscribe(pool, receiver)
        with pytest.raises(InvalidInput, match="no address with this id"):
            await pool.notifier.change(SUSAN, NotificationChange(remove="other"))
        await pool.notifier.test(SUSAN)
        with pytest.raises(TooMany, match=r"1 message went to you .* try again in 1 h"):
            await pool.notifier.test(SUSAN)
        chosen = await pool.notifier.change(
            SUSAN, NotificationChange(events=[NotificationEvent.GPU_BROKEN])
        )
        assert chosen.events == []
        ada = await pool.notifier.change(
            ADMIN, NotificationChange(events=[NotificationEvent.GPU_BROKEN])
        )
        assert ada.events == [NotificationEvent.GPU_BROKEN]


async def test_a_file_of_the_site_that_is_wrong_is_reported(tmp_path: Path) -> None:
    async with opened(pool_of(tmp_path, kind=["https"])) as pool:
        assert "unknown field `kind`" in pool.observed.now.problems["notifications"]
        assert pool.notifier.settings(SUSAN).kinds == []
