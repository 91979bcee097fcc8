"""Events are encoded as JSON once for all readers with access, and sent in batches."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract import State
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.views.broadcast import FEW, Broadcast
from benchpool_scheduler.service.views.events import TURN, Feed, FeedEntry, FeedEvent
from benchpool_scheduler.service.views.job_views import GOOD_S, JobViews
from benchpool_scheduler.service.views.visibility import Visibility
from benchpool_scheduler.store.records import JobRecord
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices

MANY = 5 * FEW


@dataclass
class Reader:
    """A listener that keeps the events it receives.

    Attributes:
        stuck: Whether the reader takes no more events until ``free`` is called.
        fails: Whether sending events to the reader raises.
    """

    pieces: list[Sequence[FeedEvent]] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    stuck: bool = False
    fails: bool = False
    then: Callable[[], None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def events(self) -> list[FeedEvent]:
        return [event for piece in self.pieces for event in piece]

    def ready(self, then: Callable[[], None]) -> bool:
        self.then = then
        return not self.stuck

    def free(self) -> None:
        self.stuck = False
        assert self.then is not None
        self.then()

    def take(self, piece: Sequence[FeedEvent]) -> None:
        if self.fails:
            raise ValueError("no")
        self.pieces.append(piece)
        self.news.set()

    def end(self) -> None:
        self.ended.set()

    async def wait_for(self, enough: Callable[[list[FeedEvent]], bool]) -> None:
        async with asyncio.timeout(60):
            while not enough(self.events):
                self.news.clear()
                await self.news.wait()


async def first_piece(pool: Pool, caller: Caller, after: int) -> Sequence[FeedEvent]:
    reader = Reader()
    with pool.events.to(reader, caller, after):
        await reader.wait_for(bool)
    return reader.pieces[0]


def everybody() -> Visibility:
    return Visibility(
        ADMIN, cast(SchedulerState, SimpleNamespace(now=Observations.of(Configuration())))
    )


def as_they_are(entries: Sequence[FeedEntry]) -> list[FeedEvent]:
    return [FeedEvent(entry.seq, entry.kind, entry.job.encode()) for entry in entries]


async def test_readers_share_encoded_event_bytes(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        start = pool.feed.seq
        job = await pool.jobs.submit(SUSAN, sleeper())
        await reached(pool, job.id, State.RUNNING)  # otherwise it may change between two readers
        callers = [*(Caller(f"root{n}", admin=True) for n in range(50)), ADMIN, SUSAN]
        received = []
        for caller in callers:
            events = pool.events.follow(caller, after=start)
            # The feed may contain an event of the pool first.
            received.append(
                await anext(event.data async for event in events if event.kind == "job")
            )
            await events.aclose()
        assert json.loads(received[0])["id"] == job.id
        assert {id(data) for data in received} == {id(received[0])}


async def test_event_shows_current_job_state(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        start = pool.feed.seq
        full = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
        await reached(pool, full.id, State.STARTING, State.RUNNING)
        job = await pool.jobs.submit(SUSAN, sleeper())
        for state in ("queued", "cancelled"):
            bodies = [json.loads(event.data) for event in await first_piece(pool, SUSAN, start)]
            assert [it["state"] for it in bodies if it.get("id") == job.id] == [state]
            if state == "queued":
                await pool.jobs.act(SUSAN, job.id, "cancel")


async def test_events_of_invisible_jobs_are_withheld(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        start = pool.feed.seq
        job = await pool.jobs.submit(SUSAN, sleeper())
        seen: dict[str, list[str]] = {}
        for caller in (ADMIN, SUSAN, JOE):
            reader = Reader()
            with pool.events.to(reader, caller, start):
                await reader.wait_for(lambda events: any(event.kind == "pool" for event in events))
            seen[caller.name] = [event.data.decode() for event in reader.events]
        assert any(job.id in data for data in seen[SUSAN.name])
        assert any(job.id in data for data in seen[ADMIN.name])
        assert not any(job.id in data for data in seen[JOE.name])


async def test_readers_without_visible_jobs_share_one_batch(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        start = pool.feed.seq
        job = await pool.jobs.submit(SUSAN, sleeper())
        await reached(pool, job.id, State.RUNNING)
        callers = [JOE, *(Caller(f"user-{number}") for number in range(10)), SUSAN]
        readers = [Reader() for _ in callers]
        with contextlib.ExitStack() as open_:
            for reader, caller in zip(readers, callers, strict=True):
                open_.enter_context(pool.events.to(reader, caller, start))
            for reader in readers:
                await reader.wait_for(bool)
        first = [reader.pieces[0] for reader in readers]
        assert {id(piece) for piece in first[:-1]} == {id(first[0])}
        assert {event.kind for event in first[0]} == {"pool"}
        assert "job" in {event.kind for event in first[-1]}


async def test_feed_entry_is_encoded_once_for_all_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []
    real = JobViews.encoded

    def counted(views: JobViews, record: JobRecord, reader: Caller) -> bytes:
        rendered.append(record.id)
        return real(views, record, reader)

    clock, runtime = FakeClock(), ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        start = pool.feed.seq
        jobs = [(await pool.jobs.submit(who, sleeper())).id for who in (SUSAN, JOE, SUSAN)]
        for job in jobs:
            await reached(pool, job, State.RUNNING)
        # The feed collapses the changes of a job to one entry.
        seqs = [entry.seq for entry in pool.feed.since(start)]
        monkeypatch.setattr(JobViews, "encoded", counted)
        for after in (start, *seqs[:-1]):
            for caller in (ADMIN, Caller("root2", admin=True)):
                await first_piece(pool, caller, after)
        assert sorted(rendered) == sorted(jobs)
        rendered.clear()
        received = [
            json.loads(event.data).get("id")
            for event in await first_piece(pool, SUSAN, start)
            if event.kind == "job"
        ]
        of_susan = [jobs[0], jobs[2]]
        assert sorted(received) == sorted(rendered) == sorted(of_susan)
        assert received == [entry.job for entry in pool.feed.since(start) if entry.job in of_susan]
        clock.pass_s(GOOD_S)
        rendered.clear()
        await first_piece(pool, ADMIN, start)
        assert sorted(rendered) == sorted(jobs)


@dataclass
class Stage:
    """A separate feed with readers; each event is the name of a job."""

    feed: Feed = field(default_factory=lambda: Feed(first=0))
    sight: Visibility = field(default_factory=everybody)

    def __post_init__(self) -> None:
        self.broadcast = Broadcast(self.feed, lambda sight, entries: as_they_are(entries))

    @contextlib.contextmanager
    def read_by(self, readers: Sequence[Reader], after: int | None = 0) -> Iterator[None]:
        with contextlib.ExitStack() as open_:
            for reader in readers:
                open_.enter_context(self.broadcast.to(reader, self.sight, after))
            yield


async def test_changes_reach_many_readers_in_few_batches() -> None:
    stage, readers = Stage(), [Reader() for _ in range(MANY)]
    changes = [f"job{number}" for number in range(40)]
    with stage.read_by(readers):
        await asyncio.sleep(0)
        for job in changes:
            stage.feed.add("job", job)
            await asyncio.sleep(0)
        for reader in readers:
            await reader.wait_for(lambda events: len(events) == len(changes))
    for reader in readers:
        assert [event.data.decode() for event in reader.events] == changes
        assert len(reader.pieces) <= 3


async def test_slow_reader_catches_up_without_delaying_readers() -> None:
    stage, slow, others = Stage(), Reader(), [Reader() for _ in range(MANY)]
    with stage.read_by([slow, *others]):
        slow.stuck = True
        stage.feed.add("job", "a")
        for reader in others:
            await reader.wait_for(lambda events: len(events) == 1)
        stage.feed.add("job", "b")
        stage.feed.add("job", "a")
        for reader in others:
            await reader.wait_for(lambda events: len(events) == 3)
        assert slow.events == []
        slow.free()
        await slow.wait_for(lambda events: len(events) == 2)
    assert [(event.seq, event.data) for event in slow.events] == [(2, b"b"), (3, b"a")]


async def test_backlog_is_sent_in_bounded_batches() -> None:
    stage, reader = Stage(), Reader()
    for number in range(3 * TURN + 7):
        stage.feed.add("job", f"job{number}")
    with stage.read_by([reader]):
        await reader.wait_for(lambda events: len(events) == 3 * TURN + 7)
    assert [len(piece) for piece in reader.pieces] == [TURN, TURN, TURN, 7]


@pytest.mark.expected_errors("could not be sent to a client")
async def test_failing_reader_ends_alone() -> None:
    stage, broken, other = Stage(), Reader(), Reader()
    broken.fails = True
    with stage.read_by([broken, other]):
        stage.feed.add("job", "a")
        await other.wait_for(lambda events: len(events) == 1)
        assert broken.ended.is_set()
        assert not other.ended.is_set()


async def test_new_reader_starts_now_and_unknown_number_resets() -> None:
    stage, first, later, lost = Stage(), Reader(), Reader(), Reader()
    stage.feed.add("job", "a")
    with stage.read_by([first]):
        await first.wait_for(lambda events: len(events) == 1)
        with stage.read_by([later], None), stage.read_by([lost], 99):
            await lost.wait_for(lambda events: len(events) == 1)
            stage.feed.add("job", "b")
            await later.wait_for(lambda events: len(events) == 1)
            await lost.wait_for(lambda events: len(events) == 2)
    assert [event.kind for event in lost.events] == ["reset", "job"]
    assert [event.data for event in later.events] == [b"b"]


async def test_closed_feed_ends_all_readers() -> None:
    stage, readers = Stage(), [Reader() for _ in range(60 * FEW)]
    with stage.read_by(readers):
        await asyncio.sleep(0)
        stage.feed.add("job", "a")
        await asyncio.sleep(0)
        stage.feed.close()
        async with asyncio.timeout(60):
            for reader in readers:
                await reader.ended.wait()
