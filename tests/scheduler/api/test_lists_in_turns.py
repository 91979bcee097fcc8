"""Long lists are made one after the other for each caller, and others' requests go between."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.api.limits import Limits, Rate
from benchpool_scheduler.service import Caller

SUSAN, JOE, HUB = Caller("susan"), Caller("joe"), Caller("hub", kind="service")


class Clock:
    """Seconds that a test lets pass."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_the_next_list_of_a_caller_begins_as_long_after_as_the_last_one_took() -> None:
    clock, begun = Clock(), list[str]()
    limits = Limits(Rate(), clock)

    async def ask(caller: Caller) -> None:
        async with limits.listing(caller):
            begun.append(caller.name)

    async with limits.listing(SUSAN):
        clock.now = 0.3
        second = asyncio.create_task(ask(SUSAN))
        await ask(JOE)
        await ask(HUB)
        await asyncio.sleep(0)
        assert begun == ["joe", "hub"]
    ended = asyncio.get_running_loop().time()
    await asyncio.sleep(0)
    assert begun == ["joe", "hub"]
    await second
    assert begun == ["joe", "hub", "susan"]
    assert asyncio.get_running_loop().time() - ended > 0.29


async def test_a_caller_who_leaves_while_waiting_keeps_nobody_waiting() -> None:
    limits = Limits(Rate(), Clock())
    async with limits.listing(SUSAN):
        waiting = asyncio.create_task(limits.listing(SUSAN).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    async with asyncio.timeout(120), limits.listing(SUSAN):
        pass
