"""Readers of the event feed get each change once, in order, and resume at their position."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

from benchpool_scheduler.contract import State
from benchpool_scheduler.service.views.events import Feed, FeedEntry, FeedEvent
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


def render(entry: FeedEntry) -> bytes | None:
    return None if entry.user == "hidden" else entry.job.encode()


async def take(feed: Feed, after: int | None, count: int) -> list[FeedEvent]:
    events = feed.follow(after, render)
    found = [await anext(events) for _ in range(count)]
    await events.aclose()
    return found


async def test_feed_resumes_after_given_number() -> None:
    feed = Feed(first=100)
    for job in "abc":
        feed.add("job", job)
    assert [(e.seq, e.data) for e in await take(feed, 101, 2)] == [(102, b"b"), (103, b"c")]


async def test_feed_collapses_repeated_changes_of_one_job() -> None:
    feed = Feed(first=0)
    for job in "abaa":
        feed.add("job", job)
    assert [(e.seq, e.data) for e in await take(feed, 0, 2)] == [(2, b"b"), (4, b"a")]


async def test_slow_reader_gets_current_state_and_later_change() -> None:
    feed, state = Feed(first=0), {"a": "queued", "b": "queued", "c": "queued"}

    def as_it_is(entry: FeedEntry) -> bytes:
        return f"{entry.job} {state[entry.job]}".encode()

    async def next_of(events: AsyncGenerator[FeedEvent, None]) -> tuple[int, bytes]:
        event = await anext(events)
        return event.seq, event.data

    for job in "abc":
        feed.add("job", job)
    slow = feed.follow(0, as_it_is)
    assert await next_of(slow) == (1, b"a queued")
    state["b"] = "ended"
    feed.add("job", "b")
    assert [await next_of(slow) for _ in range(3)] == [
        (2, b"b ended"), (3, b"c queued"), (4, b"b ended")
    ]  # fmt: skip
    for cut, following in (
        (1, [(3, b"c queued"), (4, b"b ended")]),
        (2, [(3, b"c queued"), (4, b"b ended")]),
        (3, [(4, b"b ended")]),
    ):
        again = feed.follow(cut, as_it_is)
        assert [await next_of(again) for _ in following] == following


async def test_feed_resets_on_unknown_or_old_number() -> None:
    feed = Feed(first=100, most=2)
    for job in "abc":
        feed.add("job", job)
    for after in (5, 100, 999):
        assert [e.kind for e in await take(feed, after, 1)] == ["reset"]
    assert [e.kind for e in await take(feed, 101, 2)] == ["job", "job"]


async def test_feed_skips_invisible_jobs() -> None:
    feed = Feed(first=0)
    waiting = asyncio.create_task(take(feed, None, 1))
    await asyncio.sleep(0)
    feed.add("job", "x", user="hidden")
    await asyncio.sleep(0)
    assert not waiting.done()
    feed.add("job", "y")
    assert [(e.seq, e.data) for e in await waiting] == [(2, b"y")]


async def test_closed_feed_ends_readers() -> None:
    feed = Feed(first=0)
    waiting = asyncio.create_task(take(feed, None, 1))
    await asyncio.sleep(0)
    feed.close()
    async with asyncio.timeout(60):
        assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], Exception)


async def test_feed_numbers_grow_and_reset_after_restart(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        events = pool.events.follow(SUSAN, after=pool.feed.seq)
        job = await pool.jobs.submit(SUSAN, sleeper())
        first = await anext(events)
        assert (first.kind, json.loads(first.data)["id"]) == ("job", job.id)
        await events.aclose()
        await reached(pool, job.id, State.RUNNING)
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        events = pool.events.follow(SUSAN, after=first.seq)
        again = await anext(events)
        await events.aclose()
        assert again.kind == "reset"
        assert again.seq > first.seq
