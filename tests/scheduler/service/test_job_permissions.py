"""Rights on jobs: the matrix of callers and actions, in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.errors import Forbidden, NotFound
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import ScriptedRuntime, devices

LED = story(
    """
version: 1
build: {users: {susan: 1}}
projects:
  - {name: lab, quota: 4, leads: [lea]}
  - {name: susan, parent: lab, quota: 2, members: [susan, sam], leads: ["group:susan-leads"]}
  - {name: joe, quota: 2, members: [joe], leads: [joe]}
"""
)
LEAD_ABOVE = Caller("lea")
LEAD_BY_GROUP = Caller("kim", groups=frozenset({"susan-leads"}))
MEMBER = Caller("sam")
NAMESAKE = Caller("susan", kind="service")

MAY = [SUSAN, LEAD_ABOVE, LEAD_BY_GROUP, ADMIN, HUB]
MAY_NOT = [MEMBER, JOE, Caller("susan-leads"), Caller("group:susan-leads"), Caller("")]

VERBS: dict[str, Callable[[Pool, Caller, str], object]] = {
    "job": lambda pool, caller, job: pool.jobs.detail(caller, job),
    "why": lambda pool, caller, job: pool.jobs.why(caller, job),
    "submission": lambda pool, caller, job: pool.jobs.submission(caller, job),
    "log": lambda pool, caller, job: pool.logs.which(caller, job),
    "read_log": lambda pool, caller, job: pool.logs.read(caller, job),
    "wait_log": lambda pool, caller, job: pool.logs.wait(caller, job, timeout_s=0),
    "pause": lambda pool, caller, job: pool.jobs.act(caller, job, "pause"),
    "resume": lambda pool, caller, job: pool.jobs.act(caller, job, "resume"),
    "cancel": lambda pool, caller, job: pool.jobs.act(caller, job, "cancel"),
}


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    runtime = ScriptedRuntime(devices(8))
    async with opened(make_pool(tmp_path, configuration=LED, runtime=runtime)) as pool:
        yield pool


async def call(verb: str, pool: Pool, caller: Caller, job: str) -> object:
    answer = VERBS[verb](pool, caller, job)
    return await answer if isinstance(answer, Awaitable) else answer


def _without(job: str, error: NotFound) -> str:
    return error.message.replace(job, "")


@pytest.mark.parametrize("verb", VERBS)
async def test_job_access_is_limited_to_user_leads_and_administrators(
    pool: Pool, verb: str
) -> None:
    for caller in MAY:
        job = await pool.jobs.submit(SUSAN, sleeper())
        await call(verb, pool, caller, job.id)
    job = await pool.jobs.submit(SUSAN, sleeper())
    for caller in MAY_NOT:
        with pytest.raises(NotFound) as hidden:
            await call(verb, pool, caller, job.id)
        with pytest.raises(NotFound) as absent:
            await call(verb, pool, caller, "z" * 26)
        # The answer does not reveal that the job exists.
        assert hidden.value.message.replace(job.id, "") == absent.value.message.replace(
            "z" * 26, ""
        )
    assert pool.jobs.detail(ADMIN, job.id).job.ended is None


async def test_job_list_contains_only_visible_jobs(pool: Pool) -> None:
    of_susan = await pool.jobs.submit(SUSAN, sleeper())
    of_joe = await pool.jobs.submit(JOE, sleeper())

    def listed(caller: Caller, *, all: bool) -> list[str]:
        return [job.id for job in pool.jobs.select(caller, all=all)]

    assert listed(SUSAN, all=True) == [of_susan.id]
    assert listed(ADMIN, all=False) == []
    assert listed(ADMIN, all=True) == [of_joe.id, of_susan.id]
    assert listed(LEAD_ABOVE, all=True) == [of_susan.id]
    assert listed(MEMBER, all=True) == []
    assert [job.id for job in pool.jobs.select(ADMIN, all=True, project="joe")] == [of_joe.id]
    assert pool.jobs.select(ADMIN, all=True, state=State.CANCELLED) == []
    assert len(pool.jobs.select(ADMIN, all=True, limit=1)) == 1


async def test_id_prefix_matches_only_visible_jobs(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    assert pool.jobs.detail(SUSAN, job.id[:4]).job.id == job.id
    for caller, prefix in ((JOE, job.id[:8]), (SUSAN, job.id[:3]), (SUSAN, "")):
        with pytest.raises(NotFound):
            pool.jobs.detail(caller, prefix)


async def test_pool_status_hides_holders_from_unauthorized_callers(
    pool: Pool,
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    await reached(pool, job.id, State.RUNNING)
    await pool.benches.reserve(HUB, LeaseRequest(user="susan", server="paper", spawn="1", gpus=1))

    def named(caller: Caller) -> set[tuple[str | None, str | None, str | None]]:
        return {(gpu.user, gpu.job, gpu.server) for gpu in pool.views.status(caller).gpus}

    no_holder = (None, None, None)
    assert named(JOE) == {no_holder}
    assert named(SUSAN) == {no_holder, ("susan", job.id, None), ("susan", None, "paper")}
    assert named(LEAD_ABOVE) == {no_holder, ("susan", job.id, None)}
    assert named(ADMIN) == named(SUSAN)
    assert pool.views.status(JOE).counts == pool.views.status(ADMIN).counts


async def test_quota_of_another_user_requires_administrator(pool: Pool) -> None:
    assert pool.views.quota(ADMIN, "susan").build.quota == 1
    assert pool.views.quota(SUSAN).projects[0].name == "susan"
    with pytest.raises(NotFound):
        pool.views.quota(JOE, "susan")


async def test_configuration_requires_administrator(pool: Pool) -> None:
    for caller in (SUSAN, LEAD_ABOVE):
        with pytest.raises(Forbidden):
            pool.configuration.check(caller, "version: 1")
        with pytest.raises(Forbidden):
            await pool.configuration.apply(caller, "version: 1")


async def test_events_hide_invisible_jobs(pool: Pool) -> None:
    start = pool.feed.seq
    job = await pool.jobs.submit(SUSAN, sleeper(name="secret-name"))
    await reached(pool, job.id, State.RUNNING)
    pool.feed.add("pool")

    async def received(caller: Caller) -> bytes:
        found = b""
        events = pool.events.follow(caller, after=start)
        async for event in events:
            found += event.data
            if event.kind == "pool":
                break
        await events.aclose()
        return found

    assert b"secret-name" in await received(SUSAN)
    assert b"secret-name" not in await received(JOE)
    assert job.id.encode() not in await received(JOE)
