"""A replica is ready once its path answers at a port that no other account listens on."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchpool_scheduler.service.jobs.serving.readiness import (
    MISSES,
    ReadinessWatch,
    ReplicaPlace,
    answers,
    is_of,
    listener,
)
from benchpool_support.clocks import FakeClock


@asynccontextmanager
async def answering(status: str) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("status", "ready"),
    [("200 OK", True), ("302 Found", True), ("404 Not Found", False), ("503 Not yet", False)],
)
async def test_replica_is_ready_on_status_2xx_or_3xx(status: str, ready: bool) -> None:
    async with answering(status) as port:
        assert await answers(ReplicaPlace("127.0.0.1", port, "/health")) is ready


async def test_replica_without_listener_is_not_ready() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert not await answers(ReplicaPlace("127.0.0.1", port, "/"))
        assert listener(port) is None


async def test_listener_of_another_account_is_not_ready() -> None:
    async with answering("200 OK") as port:
        me = os.geteuid()
        assert (listener(port), is_of(port, me)) == (me, True)
        assert await answers(ReplicaPlace("127.0.0.1", port, "/", me))
        if me:  # listeners of root count for every account, because containers run as root
            assert not await answers(ReplicaPlace("127.0.0.1", port, "/", me + 1))


async def test_replica_loses_readiness_until_it_answers_again() -> None:
    replies = [False, True, *[False] * MISSES, True]
    news: list[tuple[str, bool]] = []
    over = asyncio.Event()
    clock = FakeClock()

    async def ask(place: ReplicaPlace) -> bool:
        if not replies:
            over.set()
            await asyncio.Event().wait()
        return replies.pop(0)

    async def pause(seconds: float) -> None:
        clock.pass_s(seconds)
        await asyncio.sleep(0)

    watch = ReadinessWatch(clock, ask=ask, pause=pause)
    watch.changed = lambda job: news.append((job, watch.since(job) is not None))
    watch.follow({"j1": ReplicaPlace("127.0.0.1", 1, "/")})
    await asyncio.wait_for(over.wait(), 120)
    assert news == [("j1", True), ("j1", False), ("j1", True)]
    await watch.close()
    assert watch.since("j1") is None


async def test_moved_replica_is_checked_at_new_address() -> None:
    asked: list[str] = []
    answers_at = {"10.0.0.7"}
    resume = asyncio.Event()

    async def ask(place: ReplicaPlace) -> bool:
        asked.append(place.host)
        return place.host in answers_at

    async def pause(seconds: float) -> None:
        await resume.wait()
        await asyncio.sleep(0)

    news = asyncio.Event()
    watch = ReadinessWatch(FakeClock(), ask=ask, pause=pause, changed=lambda job: news.set())
    watch.follow({"j1": ReplicaPlace("10.0.0.7", 8000, "/")})
    async with asyncio.timeout(60):
        await news.wait()
        assert watch.since("j1") is not None
        news.clear()
        watch.follow({"j1": ReplicaPlace("10.0.0.8", 8000, "/")})
        assert watch.since("j1") is None
        answers_at.add("10.0.0.8")
        resume.set()
        await news.wait()
    assert watch.since("j1") is not None
    assert asked[:2] == ["10.0.0.7", "10.0.0.8"]
    await watch.close()
