"""Jobs written directly into the store are checked like submissions, and answered there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from benchpool_scheduler import contract
from benchpool_scheduler.contract import JobSubmission, LeaseRequest, State
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.hub import HubServer, StaticDirectory
from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_scheduler.service import Pool
from benchpool_scheduler.store.inbound import (
    FieldWritten,
    JobGone,
    JobWritten,
    LeaseGone,
    SuspendWritten,
    Written,
)
from benchpool_scheduler.store.records import Note
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.pools import (
    ADMIN,
    HUB,
    SUSAN,
    of_a_pass,
    opened,
    reached,
    sleeper,
    story,
    until_job,
    waiting,
)
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import PATIENCE_S, until_async

FIRST, SECOND, THIRD = "a" * 26, "b" * 26, "c" * 26


class SharedStore(SqliteStore):
    """Store that other processes write to as well."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.inbox: asyncio.Queue[Written] = asyncio.Queue()
        self.refused: dict[str, Note] = {}
        self.restored: list[str] = []
        self.kept: dict[str, str] = {}
        self.named: dict[str, str] = {}
        self.answered = asyncio.Event()

    async def written(self) -> AsyncIterator[Written]:
        while True:
            yield await self.inbox.get()

    async def refuse(self, job: str, reason: Note) -> None:
        self.refused[job] = reason
        self.answered.set()

    def id_named(self, name: str) -> str | None:
        return self.named.get(name)

    def put_back(self, job: str, field: str, why: str) -> None:
        self.kept[job] = why

    async def restore(self, lease: str) -> None:
        self.restored.append(lease)
        self.answered.set()


class Site:
    def __init__(self, folder: Path) -> None:
        self.store = SharedStore(folder / "scheduler")
        self.runtime = ScriptedRuntime(devices(9))
        self.announced: list[contract.Job] = []
        self.hub = StaticDirectory()
        self.pool = Pool(
            self.store, self.runtime, story(), state=folder, directory=self.hub,
            announce=self.announced.extend,
        )  # fmt: skip

    def write(self, job: str, submission: JobSubmission, user: str = "susan", **more: bool) -> None:
        body = msgspec.json.encode(submission)
        self.store.inbox.put_nowait(JobWritten(job, user, body, **more))

    async def has(self, job: str) -> None:
        """Wait until the pool contains a job."""
        async with asyncio.timeout(PATIENCE_S):
            async for _ in self.pool.events.follow(ADMIN, after=0):
                if any(it.id == job for it in self.pool.jobs.select(ADMIN, all=True)):
                    return


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path)
    async with opened(site.pool):
        yield site


async def test_written_job_runs_with_object_id(site: Site) -> None:
    site.write(FIRST, sleeper(gpus=2))
    await site.has(FIRST)
    job = await reached(site.pool, FIRST, State.RUNNING)
    assert (job.user, job.project, job.gpus) == ("susan", "susan", 2)
    assert site.pool.jobs.submission(SUSAN, FIRST).gpus == 2


async def test_written_job_depends_on_job_by_object_name(site: Site) -> None:
    site.store.named["prep"] = FIRST
    site.write(FIRST, sleeper())
    await reached_when_there(site, FIRST, State.RUNNING)
    site.write(SECOND, sleeper(after=("prep",)))
    await site.has(SECOND)
    waits = site.pool.jobs.detail(SUSAN, SECOND).job
    assert (waits.awaits[0].job, waits.in_line_since) == (FIRST, None)
    site.runtime.end(next(iter(site.runtime.launched)), 0)
    await reached(site.pool, SECOND, State.RUNNING)


async def reached_when_there(site: Site, job: str, state: State) -> contract.Job:
    await site.has(job)
    return await reached(site.pool, job, state)


async def test_deleted_object_cancels_dependent_job(site: Site) -> None:
    site.write(FIRST, sleeper())
    await reached_when_there(site, FIRST, State.RUNNING)
    site.write(SECOND, sleeper(after=(FIRST,)))
    await site.has(SECOND)
    site.store.inbox.put_nowait(JobGone(FIRST))
    (worker, _), *_ = await site.runtime.until_noticed(1)
    site.runtime.end(worker, 143, EndedBy.NOTICE)
    ended = await reached(site.pool, SECOND, State.CANCELLED)
    assert ended.reason is not None
    assert ended.reason.code == "dependency-failed"
    assert ended.awaits[0].outcome is State.CANCELLED


async def test_job_written_twice_is_created_once(site: Site) -> None:
    site.write(FIRST, sleeper())
    site.write(FIRST, sleeper())
    site.write(SECOND, sleeper())
    await site.has(SECOND)
    assert len(site.pool.jobs.select(ADMIN, all=True)) == 2
    assert site.store.refused == {}


@pytest.mark.parametrize(
    ("submission", "user", "code"),
    [
        (sleeper(gpus=7), "susan", "larger-than-node"),
        (sleeper(project="joe"), "susan", "not-a-member"),
        (sleeper(gpus=3, preemptible=False), "susan", "non-preemptible-over-quota"),
        (sleeper(), "eve", "no-project"),
        (sleeper(), "", "no-user"),
        (sleeper(required_level="rack"), "susan", "no-such-level"),
    ],
)
async def test_invalid_written_job_is_refused_at_its_object(
    site: Site, submission: JobSubmission, user: str, code: str
) -> None:
    site.write(FIRST, submission, user)
    async with asyncio.timeout(PATIENCE_S):
        await site.store.answered.wait()
    assert site.store.refused[FIRST].code == code
    assert site.pool.jobs.select(ADMIN, all=True) == []


async def test_written_job_with_used_key_is_refused(site: Site) -> None:
    await site.pool.jobs.submit(SUSAN, sleeper(key="k"))
    site.write(FIRST, sleeper(key="k"))
    async with asyncio.timeout(PATIENCE_S):
        await site.store.answered.wait()
    assert site.store.refused[FIRST].code == "repeated-key"


async def test_suspend_field_pauses_and_resumes_job(
    site: Site,
) -> None:
    site.write(FIRST, sleeper(), suspended=True)
    await site.has(FIRST)
    assert site.pool.jobs.detail(ADMIN, FIRST).job.state is State.PAUSED
    site.store.inbox.put_nowait(SuspendWritten(FIRST, suspend=False))
    await reached(site.pool, FIRST, State.RUNNING)
    site.store.inbox.put_nowait(SuspendWritten(FIRST, suspend=True))
    ((worker, notice),) = await site.runtime.until_noticed(1)
    assert notice.text == "Paused by kubectl."
    site.runtime.end(worker, 143, EndedBy.NOTICE)
    await reached(site.pool, FIRST, State.PAUSED)


async def test_deleted_object_ends_and_removes_job(site: Site) -> None:
    site.write(FIRST, sleeper())
    await site.has(FIRST)
    await reached(site.pool, FIRST, State.RUNNING)
    site.store.inbox.put_nowait(JobGone(FIRST))
    ((worker, notice),) = await site.runtime.until_noticed(1)
    assert (worker, notice.kind) == (WorkerId(FIRST, 1, 0), "cancel")
    events = site.pool.events.follow(ADMIN)
    site.runtime.end(worker, 143, EndedBy.NOTICE)
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            if event.kind == "deleted":
                break
    with pytest.raises(NotFound):
        site.pool.jobs.detail(ADMIN, FIRST)
    assert site.runtime.forgotten == [FIRST]


async def test_wait_reason_is_announced(site: Site) -> None:
    await site.pool.jobs.submit(SUSAN, sleeper(gpus=6))
    job = await site.pool.jobs.submit(SUSAN, sleeper())
    await waiting(site.pool, job.id)
    await until_async(lambda: any(of_a_pass(it.reason) for it in site.announced))
    assert {it.id for it in site.announced} == {job.id}


async def test_written_workers_scale_elastic_gang(site: Site) -> None:
    site.write(FIRST, sleeper(workers=3, min_workers=1))
    await site.has(FIRST)
    await reached(site.pool, FIRST, State.RUNNING)
    workers = await site.runtime.until_launched(3)
    site.store.inbox.put_nowait(FieldWritten(FIRST, "workers", 1))
    noticed = await site.runtime.until_noticed(2)
    assert [worker for worker, _ in noticed] == workers[1:]
    assert "Scaled to 1 worker " in noticed[0][1].text
    for worker, _ in noticed:
        site.runtime.end(worker, 143, EndedBy.NOTICE)
    assert site.pool.jobs.detail(ADMIN, FIRST).job.workers == 1
    site.store.inbox.put_nowait(FieldWritten(FIRST, "workers", 2))
    more = await site.runtime.until_launched(4)
    assert more[3].worker == 3
    assert site.pool.jobs.detail(ADMIN, FIRST).job.state is State.RUNNING


async def test_written_workers_scale_only_queued_rigid_gang(
    site: Site,
) -> None:
    site.write(FIRST, sleeper(workers=2))
    await site.has(FIRST)
    await reached(site.pool, FIRST, State.RUNNING)
    site.write(SECOND, sleeper(workers=2), suspended=True)
    await site.has(SECOND)
    site.store.inbox.put_nowait(FieldWritten(FIRST, "workers", 1))
    site.store.inbox.put_nowait(FieldWritten(SECOND, "workers", 1))
    site.store.inbox.put_nowait(SuspendWritten(SECOND, suspend=False))
    job = await reached(site.pool, SECOND, State.RUNNING)
    assert (job.workers, job.min_workers) == (1, 1)
    first = site.pool.jobs.detail(ADMIN, FIRST).job
    assert (first.workers, first.state) == (2, State.RUNNING)
    (why,) = site.store.kept.values()
    assert "all of its 2 workers or none" in why


async def test_impossible_written_workers_are_reverted(site: Site) -> None:
    site.write(FIRST, sleeper(gpus=2), suspended=True)
    await site.has(FIRST)
    site.store.inbox.put_nowait(FieldWritten(FIRST, "workers", 9))
    site.store.inbox.put_nowait(FieldWritten(FIRST, "priority", 30))
    await until_job(site.pool, FIRST, lambda job: job.priority == 30)
    assert site.pool.jobs.detail(ADMIN, FIRST).job.workers == 1
    assert "need 18 GPUs and can never run: the pool has" in site.store.kept[FIRST]


async def test_written_priority_changes_queue_order(site: Site) -> None:
    site.write(FIRST, sleeper(gpus=4))
    await site.has(FIRST)
    await reached(site.pool, FIRST, State.RUNNING)
    for job in (SECOND, THIRD):
        site.write(job, sleeper(gpus=4))
        await site.has(job)
    site.store.inbox.put_nowait(FieldWritten(THIRD, "priority", 40))
    site.store.inbox.put_nowait(FieldWritten(SECOND, "priority", 30))
    await until_job(site.pool, SECOND, lambda job: job.priority == 30)
    (worker,) = await site.runtime.until_launched(1)
    site.runtime.end(worker, 0)
    await reached(site.pool, THIRD, State.RUNNING)
    assert site.pool.jobs.detail(ADMIN, SECOND).job.state is State.QUEUED


async def test_written_name_renames_job(site: Site) -> None:
    site.write(FIRST, sleeper(name="old"))
    await site.has(FIRST)
    site.store.inbox.put_nowait(FieldWritten(FIRST, "name", "new"))
    await until_job(site.pool, FIRST, lambda job: job.name == "new")
    site.store.inbox.put_nowait(FieldWritten(FIRST, "name", None))
    site.store.inbox.put_nowait(FieldWritten(FIRST, "priority", 30))
    await until_job(site.pool, FIRST, lambda job: job.priority == 30)
    assert site.pool.jobs.detail(ADMIN, FIRST).job.name == "new"
    assert "cannot be removed" in site.store.kept[FIRST]


async def test_deleted_lease_object_is_restored_while_server_exists(
    site: Site,
) -> None:
    lease = await site.pool.benches.reserve(HUB, LeaseRequest("susan", "", "1", 1))
    for servers in (None, (HubServer("susan", "", ready=False),)):  # unknown; starting
        site.hub.known_servers = servers
        site.store.inbox.put_nowait(LeaseGone(lease.id))
        async with asyncio.timeout(PATIENCE_S):
            await site.store.answered.wait()
        site.store.answered.clear()
    assert site.store.restored == [lease.id, lease.id]
    site.hub.known_servers = (HubServer("susan", "other"),)
    site.store.inbox.put_nowait(LeaseGone(lease.id))
    site.write(FIRST, sleeper())
    await site.has(FIRST)
    assert (site.pool.benches.leases(ADMIN), len(site.store.restored)) == ([], 2)
