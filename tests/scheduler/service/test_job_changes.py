"""Changes of accepted jobs by users apply immediately, and completely or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.changes import JobChange, advised
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Refused
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(9))


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        yield pool


async def test_raised_priority_moves_queued_job_ahead(pool: Pool, runtime: ScriptedRuntime) -> None:
    first = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
    await reached(pool, first.id, State.RUNNING)
    second, third = [await pool.jobs.submit(SUSAN, sleeper(gpus=4)) for _ in range(2)]
    changed = await pool.jobs.act(SUSAN, third.id, "change", JobChange(priority=80))
    assert (changed.priority, changed.workers) == (80, 1)
    (worker,) = await runtime.until_launched(1)
    runtime.end(worker, 0)
    await reached(pool, third.id, State.RUNNING)
    assert pool.jobs.detail(SUSAN, second.id).job.state is State.QUEUED


async def test_queued_gang_starts_with_fewer_workers(pool: Pool) -> None:
    held = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
    await reached(pool, held.id, State.RUNNING)
    gang = await pool.jobs.submit(SUSAN, sleeper(gpus=2, workers=3))
    await decided(pool, gang.id)
    await pool.jobs.act(SUSAN, gang.id, "change", JobChange(workers=1))
    running = await reached(pool, gang.id, State.RUNNING)
    assert (running.workers, running.min_workers, running.gpus) == (1, 1, 2)


async def test_elastic_gang_changes_workers_while_running(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(workers=3, min_workers=1))
    workers = await runtime.until_launched(3)
    await reached(pool, job.id, State.RUNNING)
    await pool.jobs.act(SUSAN, job.id, "change", JobChange(workers=2))
    ((leaving, notice),) = await runtime.until_noticed(1)
    assert (leaving, notice.kind) == (workers[2], "pause")
    assert notice.text == "Scaled to 2 workers by susan."
    runtime.end(leaving, 143, EndedBy.NOTICE)
    await pool.jobs.act(SUSAN, job.id, "change", JobChange(workers=4))
    newest = (await runtime.until_launched(5))[-1]
    detail = pool.jobs.detail(SUSAN, job.id)
    assert (detail.job.state, detail.most_workers, newest.worker) == (State.RUNNING, 5, 4)
    assert pool.logs.which(SUSAN, job.id, worker=4) == newest
    assert pool.logs.which(SUSAN, job.id, worker=2) == leaving
    with pytest.raises(NotFound, match="1 attempt of 5 workers"):
        pool.logs.which(SUSAN, job.id, worker=5)


async def test_refused_worker_change_keeps_priority_too(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(workers=2))
    await reached(pool, job.id, State.RUNNING)
    with pytest.raises(Refused, match="all of its 2 workers or none; pause it first") as refused:
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(priority=80, workers=3))
    assert refused.value.numbers == {"workers": 2, "asked": 3}
    assert pool.jobs.detail(SUSAN, job.id).job.priority == job.priority
    assert (
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(priority=80, workers=2))
    ).priority == 80


async def test_impossible_change_is_refused_with_numbers(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2, workers=2, min_workers=2))
    with pytest.raises(InvalidInput, match="min_workers is 2, more than the 1 worker;"):
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(workers=1))
    whole = await pool.jobs.submit(SUSAN, sleeper(gpus=2, workers=3))
    with pytest.raises(InvalidInput, match="need 8 GPUs and can never run: the pool has 6"):
        await pool.jobs.act(SUSAN, whole.id, "change", JobChange(workers=4))
    with pytest.raises(InvalidInput, match="GPUs, time limit, project or GPU models"):
        await pool.jobs.act(SUSAN, whole.id, "change", JobChange())
    assert pool.jobs.detail(SUSAN, whole.id).job.workers == 3


async def test_advised_change_starts_job(pool: Pool) -> None:
    held = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
    await reached(pool, held.id, State.RUNNING)
    large = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
    waiting = await until_job(pool, large.id, lambda job: bool(advised(job)))
    assert waiting.reason is not None
    assert [(it.name, it.text) for it in advised(waiting)] == [("gpus", "2")]
    assert "It would start now with 2 GPUs" in waiting.reason.remedy
    await pool.jobs.act(SUSAN, large.id, "change", JobChange(gpus=2))
    running = await reached(pool, large.id, State.RUNNING)
    assert (running.gpus, running.attempt, advised(running)) == (2, 1, ())


async def test_queued_job_changes_project_and_keeps_submission_time(
    pool: Pool,
) -> None:
    held = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
    await reached(pool, held.id, State.RUNNING)
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
    await decided(pool, job.id)
    wanted = JobChange(time_limit_s=60, project="joe")
    with pytest.raises(Forbidden, match="You are not a member of project joe"):
        await pool.jobs.act(SUSAN, job.id, "change", wanted)
    changed = await pool.jobs.act(ADMIN, job.id, "change", wanted)
    assert (changed.time_limit_s, changed.project) == (60, "joe")
    assert changed.submitted == job.submitted
    listed = {name: pool.jobs.select(ADMIN, all=True, project=name) for name in ("susan", "joe")}
    assert {name: [it.id for it in found] for name, found in listed.items()} == {
        "susan": [held.id],
        "joe": [job.id],
    }
    with pytest.raises(InvalidInput, match="There is no project 'none'"):
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(project="none"))


async def test_running_job_keeps_gpus_time_limit_and_project(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    await reached(pool, job.id, State.RUNNING)
    detail = pool.jobs.detail(SUSAN, job.id)
    assert detail.fixed == ["workers", "gpus", "time_limit_s", "project", "gpu_models"]
    with pytest.raises(Refused, match="its GPUs and time limit can change while it waits"):
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(gpus=1, time_limit_s=60))
    # A change to the current value is accepted.
    same = JobChange(gpus=2, project=job.project)
    assert (await pool.jobs.act(SUSAN, job.id, "change", same)).gpus == 2


async def test_queued_job_cannot_exceed_pool_size(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    with pytest.raises(InvalidInput, match="7 GPUs for a worker can never run"):
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(gpus=7))


async def test_ended_job_rejects_changes(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    runtime.end(worker, 0)
    await reached(pool, job.id, State.SUCCEEDED)
    for change in (JobChange(priority=80), JobChange(workers=2)):
        with pytest.raises(Refused, match=r"has ended \(succeeded\) and cannot"):
            await pool.jobs.act(SUSAN, job.id, "change", change)


async def test_invisible_job_cannot_be_changed(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    with pytest.raises(NotFound):
        await pool.jobs.act(JOE, job.id, "change", JobChange(priority=80))
    assert (await pool.jobs.act(ADMIN, job.id, "change", JobChange(priority=80))).priority == 80


async def test_job_change_survives_restart(tmp_path: Path, runtime: ScriptedRuntime) -> None:
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        await pool.jobs.submit(SUSAN, sleeper(gpus=6))
        job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(priority=80, workers=2))
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        found = pool.jobs.detail(SUSAN, job.id).job
        assert (found.priority, found.workers, found.min_workers) == (80, 2, 2)
