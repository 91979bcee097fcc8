"""Webhook notifications about jobs are sent once, through restarts and faults."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from benchpool_scheduler.contract import CommandEntry, State
from benchpool_scheduler.contract.notifications import (
    NewAddress,
    NotificationChange,
    NotificationEvent,
)
from benchpool_scheduler.contract.sweeps import ListedValues, SweepPlan, SweepRequest
from benchpool_scheduler.core.fairness.gpu_hours import HourAccount, HourBudget
from benchpool_scheduler.core.fairness.hour_standing import AccountKey, HourStanding
from benchpool_scheduler.errors import Forbidden, InvalidInput, Refused, TooMany
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.notifications.bundle import Bundle
from benchpool_scheduler.notifications.delivery_state import KeptAddress
from benchpool_scheduler.runtime import DeviceState, Runtime
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.ledger.monthly_hours import MonthlyHours
from benchpool_scheduler.store import subscription_files
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
from benchpool_support.waiting import until_async
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
    """Wait until the delivery of a message is recorded on disk."""
    file = state / "scheduler" / subscription_files.DELIVERY_LOG
    await until_async(lambda: file.exists() and id_ in file.read_text())


async def test_failure_notifies_once_across_restart(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        await pool.notifier.change(SUSAN, NotificationChange(events=[NotificationEvent.FAILED]))
        job = await fails(pool)
        assert await came(receiver, 1) == ["failed"]
        await written(tmp_path, f"{job}-failed")
        assert pool.notifier.settings(SUSAN).addresses[0].reached is not None
    file = tmp_path / "scheduler" / subscription_files.DELIVERY_LOG
    file.write_text(json.dumps({**json.loads(file.read_text()), "sent": {}}))
    async with opened(pool_of(tmp_path)) as pool:
        await fails(pool, "later")
        await came(receiver, 2)
    assert [len(one.texts) for one in receiver.came] == [1, 1]
    assert "Job later" in receiver.came[1].texts[0]


async def test_failure_notifies_after_clock_moved_back(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        # State left by a clock that was two days ahead.
        ahead = time.time() + 2 * 24 * 3600.0
    record = tmp_path / "scheduler" / subscription_files.DELIVERY_LOG
    record.write_text(json.dumps({"sent": {"susan": [ahead - 20, ahead]}}))
    subscriptions = tmp_path / "scheduler" / subscription_files.SUBSCRIPTIONS
    (own,) = json.loads(subscriptions.read_text())
    subscriptions.write_text(json.dumps([{**own, "since": ahead}]))
    async with opened(pool_of(tmp_path)) as pool:
        await fails(pool)
        assert "failed" in await came(receiver, 1)


async def test_sweep_notifies_at_end_instead_of_per_trial(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        trial = python_job("import sys; sys.exit(int(sys.argv[1]))")
        entry = CommandEntry(["python3", "-c", "import sys; sys.exit(int(sys.argv[1]))", "{code}"])
        plan = SweepPlan({"code": ListedValues([0, 1, 0])})
        asked = SweepRequest(structs.replace(trial, entry=entry), plan, "codes")
        sweep = await pool.sweeps.begin(SUSAN, asked)
        assert await came(receiver, 1) == ["ended"]
        (text,) = receiver.came[0].texts
        assert text.startswith(f"Sweep codes ({sweep.id[:8]}) has ended: 3 trials, 1 failed.")
        await written(tmp_path, f"{sweep.id}-over")
    assert len(receiver.came) == 1


async def test_pending_notifications_are_sent_after_restart(
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


async def test_failed_delivery_is_retried_with_same_id(tmp_path: Path, receiver: Receiver) -> None:
    receiver.statuses += [500, 503]
    async with opened(pool_of(tmp_path)) as pool:
        pool.deliveries.again_s = (0.0, 0.01, 0.01)
        await subscribe(pool, receiver)
        job = await fails(pool)
        await came(receiver, 3)
        await written(tmp_path, f"{job}-")
    first = receiver.came[0].headers["X-Benchpool-Id"]
    assert [one.headers["X-Benchpool-Id"] for one in receiver.came[:3]] == [first] * 3


async def test_delivery_gives_up_and_shows_error(tmp_path: Path, receiver: Receiver) -> None:
    receiver.statuses += [500] * 9
    async with opened(pool_of(tmp_path)) as pool:
        pool.deliveries.again_s = (0.0, 0.01)
        await subscribe(pool, receiver)
        job = await fails(pool)
        await written(tmp_path, f"{job}-")
        (address,) = pool.notifier.settings(SUSAN).addresses
    assert address.failed == "127.0.0.1 answered with status 500."


@pytest.mark.expected_errors("a message to an address of susan failed")
async def test_broken_delivery_does_not_block_other_addresses(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        pool.deliveries.again_s = (0.0,)
        send = pool.deliveries.sender.send

        async def breaks(address: KeptAddress, bundle: Bundle, now: float, person: str) -> object:
            if address.url.endswith("/breaks"):
                raise RuntimeError("nobody thought of this")
            return await send(address, bundle, now, person)

        monkeypatch.setattr(pool.deliveries.sender, "send", breaks)
        broken = NewAddress(f"{receiver.url}/breaks", SECRET)
        await pool.notifier.change(SUSAN, NotificationChange(add=broken, wait_s=0))
        await subscribe(pool, receiver)
        job = await fails(pool)
        await written(tmp_path, f"{job}-")
        first, second = pool.notifier.settings(SUSAN).addresses
    assert first.failed == "It could not be sent: see the scheduler's log."
    assert second.reached is not None


async def test_notifications_are_bundled(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        for name in ("one", "two", "three"):
            job = await fails(pool, name)
        await came(receiver, 1)
        await written(tmp_path, "-")
        assert pool.jobs.detail(SUSAN, job).job.state is State.FAILED
        assert len(receiver.came) == 1


async def test_broken_gpu_notifies_administrators_and_site_only(
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
            (request,) = await asyncio.to_thread(of_the_site.wait_for, 1)
            await until_async(
                lambda: pool.notifier.settings(ADMIN).addresses[0].reached is not None
            )
            await pool.housekeeping.see_machines()
            assert pool.notifier.settings(SUSAN).addresses[0].reached is None
    assert b"is broken: it fell off the bus." in request.body
    assert len(receiver.came) == 1


async def test_exhausted_budget_notifies_project_leads(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        new = NewAddress(receiver.url, SECRET)
        await pool.notifier.change(JOE, NotificationChange(add=new))
        account = HourAccount("project", "vision", HourBudget(hard=90), 91.0)
        key: AccountKey = ("project", "vision")
        soft = {key: HourAccount("project", "vision", HourBudget(soft=50), 50.0)}
        hours = MonthlyHours("2026-12-01", HourStanding({key: account}, past_soft=soft))
        pool.observed.put(replace(pool.observed.now, hours=hours))
        assert await came(receiver, 1) == ["budget", "budget"]
    assert sorted(receiver.came[0].texts) == [
        "The project vision has passed its soft limit of 50 GPU-hours of this month. "
        "Until 2026-12-01, its share of the GPUs beyond guaranteed quotas is smaller.",
        "The project vision has used up its 90 GPU-hours of this month. Its new jobs start from "
        "2026-12-01 on.",
    ]


async def test_notification_secrets_are_never_shown(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path)) as pool:
        await subscribe(pool, receiver)
        (shown,) = pool.notifier.settings(SUSAN).addresses
        assert shown.shown == "http://127.0.0.1/…"
        assert pool.notifier.settings(JOE).addresses == []
        assert pool.notifier.settings(HUB).addresses == []
    file = tmp_path / "scheduler" / subscription_files.SUBSCRIPTIONS
    assert file.stat().st_mode & 0o077 == 0


async def test_invalid_notification_changes_are_refused(tmp_path: Path, receiver: Receiver) -> None:
    async with opened(pool_of(tmp_path, per_hour=1)) as pool:
        with pytest.raises(Forbidden, match="Only users"):
            await pool.notifier.change(HUB, NotificationChange(wait_s=5))
        with pytest.raises(Refused, match="no address"):
            await pool.notifier.test(SUSAN)
        await subscribe(pool, receiver)
        with pytest.raises(InvalidInput, match="no address with this id"):
            await pool.notifier.change(SUSAN, NotificationChange(remove="other"))
        await pool.notifier.test(SUSAN)
        with pytest.raises(TooMany, match=r"You were sent 1 message .* Try again in 1 h"):
            await pool.notifier.test(SUSAN)
        chosen = await pool.notifier.change(
            SUSAN, NotificationChange(events=[NotificationEvent.GPU_BROKEN])
        )
        assert chosen.events == []
        ada = await pool.notifier.change(
            ADMIN, NotificationChange(events=[NotificationEvent.GPU_BROKEN])
        )
        assert ada.events == [NotificationEvent.GPU_BROKEN]


async def test_invalid_notification_file_is_reported(tmp_path: Path) -> None:
    async with opened(pool_of(tmp_path, kind=["https"])) as pool:
        problem = pool.observed.now.problems["notifications"]
        assert "line 1: kind is not a known key" in problem
        assert "No messages are sent. Correct the file" in problem
        assert pool.notifier.settings(SUSAN).kinds == []
        (tmp_path / "notifications.yaml").write_text("kinds: [https]")
        assert (await pool.notifier.reload(ADMIN)).kinds == ["https"]
        assert "notifications" not in pool.observed.now.problems


async def test_notification_file_reload_keeps_old_settings_on_error(
    tmp_path: Path, receiver: Receiver
) -> None:
    file = tmp_path / "notifications.yaml"
    async with opened(pool_of(tmp_path, kinds=[])) as pool:
        allowed = json.dumps({"kinds": ["https"], "hosts": ["127.0.0.1"], "per_hour": 99})
        file.write_text(allowed)
        with pytest.raises(Forbidden):
            await pool.notifier.reload(SUSAN)
        assert (await pool.notifier.reload(ADMIN)).changed
        assert not (await pool.notifier.reload(ADMIN)).changed
        await subscribe(pool, receiver)
        # Without failure in the same moment, the event "started" would be sent separately.
        await pool.notifier.change(SUSAN, NotificationChange(events=[NotificationEvent.FAILED]))
        file.write_text("kinds: [https]\nper_hour: many\n")
        with pytest.raises(InvalidInput, match="line 2: per_hour"):
            await pool.notifier.reload(ADMIN)
        assert "The old settings stay in force" in pool.observed.now.problems["notifications"]
        await fails(pool)
        assert await came(receiver, 1) == ["failed"]
        file.write_text("kinds: [slack]\n")
        await pool.notifier.reload(ADMIN)
        after = await pool.notifier.test(SUSAN)
        assert after.addresses[0].failed == "This site no longer sends to https addresses."
    assert len(receiver.came) == 1
