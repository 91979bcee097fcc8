"""A job on which the core fails is quarantined with a reason, and the pool continues."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import JobId, Plan
from benchpool_scheduler.core.plan import decide_on
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.service import Pool
from benchpool_scheduler.store.records import AddJob, JobRecord
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.pools import (
    ADMIN,
    JOE,
    STORY,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices

POISONED = ("a" * 26, "b" * 26)


async def with_poison(folder: Path, *ids: str) -> Pool:
    """Return a pool whose store contains jobs that validation would have refused."""
    store = SqliteStore(folder / "scheduler")
    await store.open()
    for job in ids:
        record = JobRecord(
            id=job,
            name="poison",
            project="susan",
            user="susan",
            state=JobState.QUEUED,
            submitted=1.0,
            queued_since=1.0,
            spec=JobSpec(workers=2, min_workers=5),
        )
        await store.commit(AddJob(record, msgspec.json.encode(sleeper())))
    await store.close()
    return make_pool(folder, runtime=ScriptedRuntime(devices(9)))


class Failing:
    """Core that fails while one of these jobs is in the state."""

    def __init__(self, *jobs: str) -> None:
        self.jobs = {JobId(job) for job in jobs}
        self.tried = 0

    def __call__(self, state: ClusterState, now_s: float) -> Plan:
        self.tried += 1
        if self.jobs & state.jobs.keys():
            raise ZeroDivisionError("nobody thought of this")
        return decide_on(state, now_s)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.expected_errors("set aside: the core cannot process it")
async def test_invalid_job_is_quarantined_and_pool_continues(tmp_path: Path, count: int) -> None:
    async with opened(await with_poison(tmp_path, *POISONED[:count])) as pool:
        other = await pool.jobs.submit(JOE, sleeper(gpus=2))
        await reached(pool, other.id, State.RUNNING)
        for job in POISONED[:count]:
            shown = await decided(pool, job)
            assert shown.reason is not None
            assert shown.reason.code == "set-aside"
            assert "5" in shown.reason.text
            assert "the minimum must be between 1 and 2" in shown.reason.text
        problems = pool.views.status(ADMIN).health.problems
        assert len(problems) == 1
        assert problems[0].count("and skips it") == count

        for job in POISONED[:count]:
            await pool.jobs.act(SUSAN, job, "cancel")
        await reached(pool, POISONED[0], State.CANCELLED)
        await pool.passes.make()
        assert pool.views.status(ADMIN).health.ok


@pytest.mark.expected_errors("set aside: the core cannot process it")
async def test_quarantined_job_keeps_its_gpus(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        bad = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        good = await pool.jobs.submit(JOE, sleeper(gpus=2))
        for job in (bad, good):
            await reached(pool, job.id, State.RUNNING)
        pool.state_cache.decider = Failing(bad.id)
        third = await pool.jobs.submit(JOE, sleeper(gpus=2))
        await reached(pool, third.id, State.RUNNING)
        held = [gpu for launch in runtime.launched.values() for gpu in launch.gpus]
        assert len(held) == len(set(held)) == 6
        assert list(pool.state_cache.quarantined) == [bad.id]
        assert pool.figures.read().breaches == {}

        runtime.end(runtime_worker(runtime, bad.id))
        await reached(pool, bad.id, State.SUCCEEDED)
        await pool.passes.make()
        assert pool.state_cache.quarantined == {}


@pytest.mark.expected_errors("set aside: the core cannot process it")
async def test_failing_job_is_found_by_bisection(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        jobs = [(await pool.jobs.submit(SUSAN, sleeper(gpus=6))).id for _ in range(40)]
        await decided(pool, jobs[-1])
        failing = Failing()
        pool.state_cache.decider = failing
        new = [(await pool.jobs.submit(JOE, sleeper(gpus=6))).id for _ in range(3)]
        failing.jobs = {JobId(new[1])}
        failing.tried = 0
        shown = await until_job(
            pool, new[1], lambda now: now.reason is not None and now.reason.code == "set-aside"
        )
        assert shown.state is State.QUEUED
        assert (await decided(pool, new[2])).reason is not None
        assert shown.reason is not None
        assert "nobody thought of this" in shown.reason.text


@pytest.mark.expected_errors("set aside: the core cannot process it")
async def test_configuration_change_retries_quarantined_job(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        failing = Failing()
        pool.state_cache.decider = failing
        async with pool.ledger.lock:
            job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
            failing.jobs = {JobId(job.id)}
        await until_job(
            pool, job.id, lambda now: now.reason is not None and now.reason.code == "set-aside"
        )
        failing.jobs = set()
        await pool.configuration.apply(ADMIN, STORY)
        await reached(pool, job.id, State.RUNNING)


async def test_core_fault_without_culprit_quarantines_no_job(tmp_path: Path) -> None:
    def broken(state: ClusterState, now_s: float) -> Plan:
        raise InvalidInput("the tree is upside down")

    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        await pool.jobs.submit(SUSAN, sleeper(gpus=1))
        pool.state_cache.decider = broken
        with pytest.raises(InvalidInput, match="upside down"):
            await pool.passes.make()
        assert pool.state_cache.quarantined == {}
        pool.state_cache.decider = decide_on
        await pool.passes.make()
        assert pool.views.status(ADMIN).health.ok


def runtime_worker(runtime: ScriptedRuntime, job: str) -> WorkerId:
    return next(worker for worker in runtime.alive if worker.job == job)
