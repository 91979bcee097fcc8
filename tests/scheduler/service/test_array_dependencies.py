"""Jobs that depend on an array: they wait for all of its tasks, or are cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, State
from benchpool_scheduler.contract.run_changes import JobAgain
from benchpool_scheduler.contract.sweeps import (
    TASK,
    ListedValues,
    Sweep,
    SweepPlan,
    SweepRequest,
    SweepStop,
)
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.jobs.run_again import run_again
from benchpool_scheduler.service.views import awaited_jobs
from benchpool_scheduler.service.views.forecast_chains import chain_of, task_id
from benchpool_scheduler.store.records import DropJob
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices

FOLD = JobSubmission(entry=CommandEntry(["python3", "fold.py"]), name="folds")
PLAN = SweepPlan({TASK: ListedValues([3, 5, 7, 9])}, max_concurrent=2, array=True)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(9))


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        yield pool


async def begun(pool: Pool, plan: SweepPlan = PLAN) -> Sweep:
    return await pool.sweeps.begin(SUSAN, SweepRequest(FOLD, plan))


async def after(pool: Pool, array: Sweep, **more: bool) -> Job:
    return await pool.jobs.submit(SUSAN, sleeper(name="plot", after=(array.id[:8],), **more))


async def end(runtime: ScriptedRuntime, task: int, code: int = 0) -> str:
    """End a task, counted from 1 in order of start; return the ID of its job."""
    worker = (await runtime.until_launched(task))[task - 1]
    runtime.end(worker, code, EndedBy.ITSELF)
    return worker.job


def wait_text(pool: Pool, job: str) -> str:
    reason = pool.jobs.detail(SUSAN, job).job.reason
    assert reason is not None
    return reason.text


async def test_dependent_job_waits_for_all_array_tasks(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    array = await begun(pool)
    later = await after(pool, array)
    assert later.reason is not None
    which = f"array {array.id[:8]} folds"
    assert later.reason.text == f"Waits for 4 of 4 jobs of {which}."
    assert later.reason.remedy == (
        "It joins the queue by itself when all of them have succeeded; if one does not, this job "
        "is not run."
    )
    for task in range(1, 4):
        job = await end(runtime, task)
        await reached(pool, job, State.SUCCEEDED)
        left = 4 - task
        assert wait_text(pool, later.id) == f"Waits for {left} of 4 jobs of {which}."
    reason = pool.jobs.detail(SUSAN, later.id).job.reason
    assert reason is not None
    assert {key: reason.numbers[key] for key in ("array", "tasks", "fraction")} == {
        "array": array.id,
        "tasks": 1,
        "fraction": 0.75,
    }
    assert pool.jobs.detail(SUSAN, later.id).job.in_line_since is None
    await end(runtime, 4)
    done = await reached(pool, later.id, State.RUNNING)
    assert [(it.job, it.name, it.outcome, it.tasks) for it in done.awaits] == [
        (array.id, "folds", State.SUCCEEDED, 4)
    ]


async def test_failed_task_cancels_dependent_job_unless_after_any(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    array = await begun(pool)
    later, anyhow = await after(pool, array), await after(pool, array, after_any=True)
    failed = await end(runtime, 2, code=3)
    ended = await reached(pool, later.id, State.CANCELLED)
    which = f"array {array.id[:8]} folds"
    assert ended.reason is not None
    assert ended.reason.text == (
        f"Not run: task 5 of {which} (job {failed[:8]}) failed, and this job was to run after all "
        "of that array had succeeded."
    )
    assert wait_text(pool, anyhow.id) == f"Waits for 3 of 4 jobs of {which}."
    with pytest.raises(Refused, match=rf"^Task 5 of {which} \(job {failed[:8]}\) failed already"):
        await after(pool, array)
    for task in (1, 3, 4):
        await end(runtime, task)
    done = await reached(pool, anyhow.id, State.RUNNING)
    assert done.awaits[0].outcome is State.FAILED
    again, _ = await run_again(pool.jobs, SUSAN, later.id, JobAgain())
    assert again.awaits == [], "as the reason says"
    assert (await reached(pool, (await after(pool, array, after_any=True)).id, State.RUNNING)).id


async def test_stopped_array_cancels_dependent_job(pool: Pool, runtime: ScriptedRuntime) -> None:
    array = await begun(pool)
    later, anyhow = await after(pool, array), await after(pool, array, after_any=True)
    await runtime.until_launched(2)
    await pool.sweeps.stop(SUSAN, array.id, SweepStop(let_finish=True))
    ended = await reached(pool, later.id, State.CANCELLED)
    which = f"array {array.id[:8]} folds"
    assert ended.reason is not None
    assert f"{which} ended before all of its 4 tasks had started" in ended.reason.text
    assert (
        wait_text(pool, anyhow.id) == f"Waits for the last 2 jobs of {which}, which starts no more."
    )
    for task in (1, 2):
        await end(runtime, task)
    await reached(pool, anyhow.id, State.RUNNING)


async def test_cancelled_task_cancels_dependent_job(pool: Pool, runtime: ScriptedRuntime) -> None:
    array = await begun(pool, replace(PLAN, max_concurrent=4))
    later = await after(pool, array)
    first = (await runtime.until_launched(4))[0]
    await pool.sweeps.stop(SUSAN, array.id, SweepStop())
    await runtime.until_noticed(4)
    runtime.end(first, 143, EndedBy.NOTICE)
    ended = await reached(pool, later.id, State.CANCELLED)
    assert ended.reason is not None
    assert f"(job {first.job[:8]}) was cancelled or stopped, and" in ended.reason.text


async def test_wait_reason_names_paused_task_and_hides_invisible_array(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    array = await begun(pool)
    later = await after(pool, array)
    first, _ = await runtime.until_launched(2)
    await pool.jobs.act(SUSAN, first.job, "pause")
    await runtime.until_noticed(1)
    runtime.end(first, 143, EndedBy.NOTICE)
    await reached(pool, first.job, State.PAUSED)
    record = pool.ledger.job(later.id)
    assert record is not None
    job = pool.jobs.detail(SUSAN, later.id).job
    assert job.reason is not None
    assert job.reason.remedy.startswith(f"`benchpool resume {first.job[:8]}` resumes paused jobs")
    hidden = awaited_jobs.reason(pool.ledger, record, lambda job: False)
    assert hidden.text == "Waits for 4 of 4 jobs of another array of its user."
    assert [it.name for it in awaited_jobs.listed(pool.ledger, record, lambda job: False)] == [""]


async def test_dependency_on_sweep_or_foreign_array_is_refused(pool: Pool) -> None:
    array = await begun(pool)
    with pytest.raises(NotFound, match="You have no job or array with the id"):
        await pool.jobs.submit(JOE, sleeper(after=(array.id,)))
    rates = SweepPlan({"lr": ListedValues([1, 2])})
    sweep = await pool.sweeps.begin(SUSAN, SweepRequest(FOLD, rates))
    with pytest.raises(InvalidInput, match=f"{sweep.id[:8]} is a sweep, which can add trials"):
        await after(pool, sweep)


async def test_dependent_job_waits_for_jobs_and_arrays(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    array = await begun(pool, replace(PLAN, parameters={TASK: ListedValues([1])}))
    await runtime.until_launched(1)
    prep = await pool.jobs.submit(SUSAN, sleeper(name="prep"))
    later = await pool.jobs.submit(SUSAN, sleeper(after=(prep.id, array.id)))
    assert wait_text(pool, later.id).startswith(f"Waits for 2 of 2: job {prep.id[:8]} prep")
    assert wait_text(pool, later.id).endswith(f", 1 of 1 job of array {array.id[:8]} folds.")
    await end(runtime, 1)
    await until_job(pool, later.id, lambda now: now.awaits[1].outcome is State.SUCCEEDED)
    await end(runtime, 2)
    await reached(pool, later.id, State.RUNNING)


async def test_array_dependency_survives_restart_and_job_removal(
    tmp_path: Path, runtime: ScriptedRuntime
) -> None:
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        array = await begun(pool)
        later = await after(pool, array)
        gone = await end(runtime, 1)
        await runtime.until_launched(3)  # the array keeps the result of the first job
        await pool.ledger.commit(DropJob(gone))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        assert wait_text(pool, later.id) == f"Waits for 3 of 4 jobs of array {array.id[:8]} folds."
        for task in (2, 3, 4):
            await end(runtime, task)
        await reached(pool, later.id, State.RUNNING)


async def test_start_estimate_includes_future_array_tasks(tmp_path: Path, clock: FakeClock) -> None:
    runtime = ScriptedRuntime(devices(9), start_at_once=False)
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        for number in range(1, 5):
            known = await pool.jobs.submit(SUSAN, sleeper(name=f"folds #{number}"))
            worker = (await runtime.until_launched(number))[-1]
            runtime.begin(worker, at=clock.now())
            await reached(pool, known.id, State.RUNNING)
            clock.pass_s(600)
            runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
            await reached(pool, known.id, State.SUCCEEDED)
        array = await begun(pool, replace(PLAN, parameters={TASK: ListedValues([*range(8)])}))
        for worker in (await runtime.until_launched(6))[4:]:
            runtime.begin(worker, at=clock.now())
            await reached(pool, worker.job, State.RUNNING)
        later = await after(pool, array)
        now = clock.now()
        snapshot = await pool.state_cache.snapshot(now)
        assert snapshot is not None
        found = chain_of(pool.ledger, pool.observed.now, snapshot, now)
        to_come = [task_id(array.id, number) for number in range(2, 8)]
        assert [it.job.id for it in found.dependents] == [*to_come, later.id]
        assert [{*it.after} for it in found.dependents[2:6]] == [{it} for it in to_come[:4]]
        assert found.dependents[-1].after == {*to_come, *(row.job for row in array.trials)}
        await pool.estimates.make()
        estimated = pool.jobs.detail(SUSAN, later.id).job.estimated_start
        assert estimated is not None
        assert estimated.likely is not None
        in_s = estimated.likely.timestamp() - now
        assert 4 * 600 * 0.8 < in_s < 4 * 600 * 1.2, "eight tasks of ten minutes, two at a time"
