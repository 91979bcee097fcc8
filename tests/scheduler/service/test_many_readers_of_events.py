"""What happens is made into JSON once for all who may see it, and told to many in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from benchpool_scheduler.contract import State
from benchpool_scheduler.service import Caller
from benchpool_scheduler.service.views.events import FEW, Feed, FeedEntry, FeedEvent
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices

MANY = 5 * FEW


def as_they_are(entries: Sequence[FeedEntry]) -> list[FeedEvent]:
    return [FeedEvent(entry.seq, entry.kind, entry.job.encode()) for entry in entries]


async def test_all_who_may_see_a_job_are_told_the_very_same_bytes(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        start = pool.feed.seq
        job = await pool.jobs.submit(SUSAN, sleeper())
        callers = [*(Caller(f"root{n}", admin=True) for n in range(50)), ADMIN, SUSAN]
        told = []
        for caller in callers:
            events = pool.events.follow(caller, after=start)
            told.append((await anext(events)).data)
            await events.aclose()
        assert json.loads(told[0])["id"] == job.id
        assert {id(data) for data in told} == {id(told[0])}


async def test_what_is_told_is_never_older_than_the_job(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        start = pool.feed.seq
        full = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
        await reached(pool, full.id, State.STARTING, State.RUNNING)
        job = await pool.jobs.submit(SUSAN, sleeper())
        for state in ("queued", "cancelled"):
            async with contextlib.aclosing(pool.events.pieces(SUSAN, after=start)) as pieces:
                told = [json.loads(event.data) for event in await anext(pieces)]
            assert [it["state"] for it in told if it.get("id") == job.id] == [state]
            if state == "queued":
                await pool.jobs.act(SUSAN, job.id, "cancel")


async def test_nobody_is_told_what_others_alone_may_see(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        start = pool.feed.seq
        job = await pool.jobs.submit(SUSAN, sleeper())
        seen: dict[str, list[str]] = {}
        for caller in (ADMIN, SUSAN, JOE):
            found = seen.setdefault(caller.name, [])
            async with contextlib.aclosing(pool.events.pieces(caller, after=start)) as pieces:
                async for piece in pieces:
                    found.extend(event.data.decode() for event in piece)
                    if any(event.kind == "pool" for event in piece):
                        break
        assert any(job.id in data for data in seen[SUSAN.name])
        assert any(job.id in data for data in seen[ADMIN.name])
        assert not any(job.id in data for data in seen[JOE.name])


async def test_many_readers_are_told_of_many_changes_in_few_pieces() -> None:
    feed, pieces = Feed(first=0), dict[int, list[list[str]]]()

    async def read(reader: int) -> None:
        async for piece in feed.pieces(0, as_they_are):
            pieces.setdefault(reader, []).append([event.data.decode() for event in piece])

    readers = [asyncio.create_task(read(number)) for number in range(MANY)]
    await asyncio.sleep(0)
    changes = [f"job{number}" for number in range(40)]
    for job in changes:
        feed.add("job", job)
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        while sum(len(found) > 0 for found in pieces.values()) < MANY:
            await asyncio.sleep(0.01)
    feed.close()
    await asyncio.gather(*readers)
    for found in pieces.values():
        assert [job for piece in found for job in piece] == changes
        assert len(found) <= 2


async def test_a_closed_feed_ends_readers_that_gather() -> None:
    feed = Feed(first=0)

    async def read() -> None:
        async for _ in feed.pieces(0, as_they_are):
            raise AssertionError("nobody is told after the end")

    readers = [asyncio.create_task(read()) for _ in range(60 * FEW)]
    await asyncio.sleep(0)
    feed.add("job", "a")
    await asyncio.sleep(0)
    feed.close()
    async with asyncio.timeout(5):
        await asyncio.gather(*readers)
