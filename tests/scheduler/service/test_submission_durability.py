"""Accepted submissions are durable, and a repeated submission creates no second job."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import NotFound, Refused, Unavailable
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
)
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async


async def test_repeated_key_creates_one_job(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        repeats = [pool.jobs.submit_once(SUSAN, sleeper(key="k")) for _ in range(20)]
        answers = await asyncio.gather(*repeats)
        assert len({job.id for job, _ in answers}) == 1
        assert [new for _, new in answers].count(True) == 1
        other, new = await pool.jobs.submit_once(JOE, sleeper(key="k"))
        assert (new, other.user) == (True, "joe")
        assert len(pool.jobs.select(ADMIN, all=True)) == 2


async def test_key_with_other_content_is_refused_with_difference(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        first = await pool.jobs.submit(SUSAN, sleeper(key="k"))
        for other, words in (
            (sleeper(key="k", gpus=2), "gpus 1, now 2"),
            (sleeper(key="k", env={"SEED": "2"}), "env"),
            (sleeper(key="k", name="other"), "name"),
        ):
            with pytest.raises(Refused) as refused:
                await pool.jobs.submit(SUSAN, other)
            assert refused.value.code == "repeated-key"
            assert f"belongs to job {first.id[:8]}" in refused.value.message
            assert f"other content: {words}" in refused.value.message
        both = [pool.jobs.submit(SUSAN, sleeper(key="m", gpus=gpus)) for gpus in (1, 2)]
        came = await asyncio.gather(*both, return_exceptions=True)
        assert [isinstance(one, Refused) for one in came] == [False, True]
        assert len(pool.jobs.select(ADMIN, all=True)) == 2


async def test_key_survives_restart(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        first = await pool.jobs.submit(SUSAN, sleeper(key="k"))
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        again, new = await pool.jobs.submit_once(SUSAN, sleeper(key="k"))
        assert (again.id, new) == (first.id, False)


async def test_refused_submission_keeps_key_free(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        with pytest.raises(Refused):
            await pool.jobs.submit(SUSAN, sleeper(key="k", gpus=3, preemptible=False))
        assert (await pool.jobs.submit(SUSAN, sleeper(key="k"))).state is State.QUEUED


async def test_cancelled_submission_keeps_memory_and_store_consistent(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        task = asyncio.create_task(pool.jobs.submit(SUSAN, sleeper(key="k")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        job, new = await pool.jobs.submit_once(SUSAN, sleeper(key="k"))
        assert new is False
        assert pool.ledger.store.submission(job.id) is not None


async def test_full_disk_refuses_submissions_and_delays_job_end(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        await reached(pool, job.id, State.RUNNING)
        store = pool.ledger.store
        commit = store.commit

        async def full(*changes: object, as_written: object = None) -> None:
            raise Unavailable("The disk is full: nothing can be accepted.", code="store-full")

        store.commit = full  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match="disk is full"):
            await pool.jobs.submit(SUSAN, sleeper())
        runtime.end((await runtime.until_launched(1))[0])
        await until_async(lambda: "events" in pool.observed.now.problems)
        assert pool.jobs.detail(SUSAN, job.id).job.state is State.RUNNING
        assert not pool.views.status(SUSAN).health.ok
        store.commit = commit  # type: ignore[method-assign]
        await reached(pool, job.id, State.SUCCEEDED)


async def test_old_jobs_are_removed_with_their_files(tmp_path: Path) -> None:
    from benchpool_scheduler.configuration.settings import Retention
    from benchpool_scheduler.service.housekeeping.retention import DAY_S
    from benchpool_support.clocks import FakeClock

    clock, runtime = FakeClock(), ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(key="k"))
        await pool.jobs.act(SUSAN, job.id, "cancel")
        await asyncio.sleep(0)
        for worker in list(runtime.launched):
            runtime.end(worker, 143, at=clock.now())
        await reached(pool, job.id, State.CANCELLED)
        after = pool.feed.seq
        clock.pass_s(Retention().ended_days * DAY_S + 1)
        await pool.housekeeping.removal.clean()
        assert runtime.forgotten == [job.id]
        with pytest.raises(NotFound):
            pool.jobs.detail(SUSAN, job.id)
        events = pool.events.follow(SUSAN, after=after)
        # The feed may contain an event of the pool first.
        event = await anext(event async for event in events if event.kind != "pool")
        await events.aclose()
        assert (event.kind, event.data) == ("deleted", b'{"id":"%s"}' % job.id.encode())
        assert (await pool.jobs.submit_once(SUSAN, sleeper(key="k")))[1] is True
