"""An unresponsive name server delays only the lookups of one user."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection

import pytest

from benchpool_scheduler.notifications.name_lookups import NameLookups
from benchpool_support.waiting import until_async


class SlowServer:
    """Resolver that delays answers for ``slow`` until released, and counts its running lookups."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.asked = 0

    def __call__(self, host: str, port: int) -> Collection[str]:
        if host == "slow":
            self.asked += 1
            self.may_answer.wait(300)
        if host == "unknown":
            raise OSError("no such name")
        return [f"address of {host}"]


async def test_silent_name_server_blocks_no_other_user() -> None:
    server = SlowServer()
    lookups = NameLookups(server)
    stuck = [
        asyncio.create_task(lookups.resolve(f"user-{number}", "slow", 443)) for number in range(40)
    ]
    await until_async(lambda: server.asked == 40)
    assert await lookups.resolve("joe", "fast", 443) == ["address of fast"]
    # File work uses the loop's own threads, and none of them waits for a name.
    assert await asyncio.gather(*(asyncio.to_thread(int, "7") for _ in range(40))) == [7] * 40
    server.may_answer.set()
    assert await asyncio.gather(*stuck) == [["address of slow"]] * 40


async def test_user_has_at_most_one_concurrent_lookup() -> None:
    server = SlowServer()
    lookups = NameLookups(server)
    first = asyncio.create_task(lookups.resolve("susan", "slow", 443))
    await until_async(lambda: server.asked == 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(lookups.resolve("susan", "slow", 443))
    third = asyncio.create_task(lookups.resolve("susan", "fast", 443))
    await asyncio.gather(*(lookups.resolve("joe", "fast", 443) for _ in range(3)))
    assert (server.asked, second.done(), third.done()) == (1, False, False)
    server.may_answer.set()
    assert await second == ["address of slow"]
    assert await third == ["address of fast"]


async def test_unknown_host_name_is_reported() -> None:
    with pytest.raises(OSError, match="no such name"):
        await NameLookups(SlowServer()).resolve("susan", "unknown", 443)
