"""Long lists are built one at a time per caller; requests of other callers run in between."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.api.limits import Limits, Rate
from benchpool_scheduler.service import Caller

SUSAN, JOE, HUB = Caller("susan"), Caller("joe"), Caller("hub", kind="service")


class Clock:
    """Clock that the test advances, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_next_list_of_caller_waits_for_duration_of_last() -> None:
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


async def test_cancelled_waiting_caller_blocks_no_other_caller() -> None:
    limits = Limits(Rate(), Clock())
    async with limits.listing(SUSAN):
        waiting = asyncio.create_task(limits.listing(SUSAN).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    async with asyncio.timeout(120), limits.listing(SUSAN):
        pass
