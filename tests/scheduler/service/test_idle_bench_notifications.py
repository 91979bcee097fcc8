"""The notifications about an idle bench reach only its owner."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchpool_scheduler.contract.notifications import NewAddress, NotificationChange
from benchpool_scheduler.core.fairness.gpu_hours import HourAccount, HourBudget
from benchpool_scheduler.core.fairness.hour_standing import HourStanding
from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.service.ledger.monthly_hours import MonthlyHours
from benchpool_support.idle_site import HubThatStops, IdleSite, running
from benchpool_support.pools import ADMIN, JOE, SUSAN
from benchpool_support.webhooks import Receiver, receiving

USERS = (HubUser("susan"), HubUser("joe"), HubUser("ada", admin=True))
PEOPLE = (SUSAN, JOE, ADMIN)
SECRET = "a secret that nobody reads"


async def came(receiver: Receiver, number: int = 1) -> list[str]:
    found = await asyncio.to_thread(receiver.wait_for, number)
    return [event for one in found for event in one.events]


async def notify_others(site: IdleSite) -> None:
    """Break a GPU, for ada and the site, and use up the budget of joe."""
    pool = site.pool
    site.runtime.mark("GPU-2", DeviceState.BROKEN, "it fell off the bus")
    await pool.housekeeping.see_machines()
    account = HourAccount("user", "joe", HourBudget(hard=90), 91.0)
    hours = MonthlyHours("2026-12-01", HourStanding({("user", "joe"): account}))
    pool.observed.put(replace(pool.observed.now, hours=hours))


async def test_idle_bench_notifies_its_owner_only(tmp_path: Path) -> None:
    with ExitStack() as stack:
        of_site, *receivers = [stack.enter_context(receiving()) for _ in range(4)]
        facts = {
            "kinds": ["https"],
            "hosts": ["127.0.0.1"],
            "pool": [of_site.url.replace("http:", "json:")],
        }
        (tmp_path / "notifications.yaml").write_text(json.dumps(facts))
        async with running(tmp_path, directory=HubThatStops(USERS)) as site:
            for who, receiver in zip(PEOPLE, receivers, strict=True):
                new = NewAddress(receiver.url, SECRET)
                chosen = await site.pool.notifier.change(who, NotificationChange(add=new))
                assert "idle-bench" in chosen.events
            await site.rest(20)
            susan, joe, ada = receivers
            assert await came(susan) == ["idle-bench"]
            (text,) = susan.came[0].texts
            assert text.startswith("Your default server has been idle for ")
            assert "it is stopped at " in text
            await site.rest(30)
            assert await came(susan, 2) == ["idle-bench"] * 2
            # Messages to the others come after any that they would have got about this bench.
            await notify_others(site)
            assert await came(joe) == ["budget"]
            assert await came(ada) == ["gpu-broken"]
            (request,) = await asyncio.to_thread(of_site.wait_for, 1)
            assert b"it fell off the bus" in request.body
            assert b"idle" not in request.body
        assert [len(it.came) for it in (joe, ada, of_site)] == [1, 1, 1]
