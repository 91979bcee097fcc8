"""Jobs that depend on other jobs: they wait outside the queue, join it, or are cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.run_changes import JobAgain
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.jobs.run_again import run_again
from benchpool_scheduler.store.records import JobProgress
from benchpool_support.pools import (
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


async def running(pool: Pool, **more: object) -> str:
    job = await pool.jobs.submit(SUSAN, sleeper(name="prep", **more))
    return (await reached(pool, job.id, State.RUNNING)).id


async def test_dependent_job_shows_progress_and_runs_afterwards(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    prep = await running(pool)
    later = await pool.jobs.submit(SUSAN, sleeper(after=(prep[:8],)))
    assert later.reason is not None
    assert later.reason.text == f"Waits for job {prep[:8]} prep."
    now = pool.observed.settings.clock.now()
    pool.ledger.remember(prep, JobProgress(at=now, fraction=0.625))
    job = pool.jobs.detail(SUSAN, later.id).job
    assert job.reason is not None
    assert job.reason.text == f"Waits for job {prep[:8]} prep (62 %)."
    assert job.reason.remedy == (
        "It joins the queue by itself when that job has succeeded; if it does not, this job is "
        "not run."
    )
    assert (job.reason.numbers["job"], job.reason.numbers["fraction"]) == (prep, 0.625)
    assert job.in_line_since is None
    runtime.end(next(iter(runtime.launched)), 0)
    done = await reached(pool, later.id, State.RUNNING)
    assert [(it.job, it.outcome) for it in done.awaits] == [(prep, State.SUCCEEDED)]
    assert done.in_line_since is not None
    assert done.in_line_since > done.submitted


async def test_dependent_job_stays_outside_queue(pool: Pool) -> None:
    prep = await running(pool)
    later = await pool.jobs.submit(SUSAN, sleeper(after=(prep,)))
    await pool.passes.make()
    seen = pool.observed.now
    now = pool.observed.settings.clock.now()
    assert later.id not in {job.id for job in snapshots.snapshot(pool.ledger, seen, now).jobs}
    assert later.id not in seen.latest_pass.reasons
    assert pool.views.waiting() == 0
    quota = pool.views.quota(SUSAN)
    assert [row.waiting for row in quota.projects if row.name == "susan"] == [0]
    assert pool.jobs.select(SUSAN, reason="waits-for-jobs")[0].id == later.id


@pytest.mark.parametrize(("exit_code", "how"), [(3, "failed"), (None, "was cancelled")])
async def test_failed_dependency_cancels_chain_of_jobs(
    pool: Pool, runtime: ScriptedRuntime, exit_code: int | None, how: str
) -> None:
    prep = await running(pool)
    fit = await pool.jobs.submit(SUSAN, sleeper(name="fit", after=(prep,)))
    plot = await pool.jobs.submit(SUSAN, sleeper(after=(fit.id,)))
    anyhow = await pool.jobs.submit(SUSAN, sleeper(after=(fit.id,), after_any=True))
    if exit_code is None:
        await pool.jobs.act(SUSAN, prep, "cancel")
        await runtime.until_noticed(1)
    worker = next(iter(runtime.launched))
    runtime.end(worker, exit_code or 143, EndedBy.ITSELF if exit_code else EndedBy.NOTICE)
    ended = await reached(pool, fit.id, State.CANCELLED)
    assert ended.reason is not None
    assert ended.reason.code == "dependency-failed"
    assert ended.reason.text == (
        f"Not run: job {prep[:8]} prep {how}, and this job was to run after it had succeeded."
    )
    last = await reached(pool, plot.id, State.CANCELLED)
    assert last.reason is not None
    assert f"job {fit.id[:8]} fit was not run" in last.reason.text
    assert (last.started, last.attempt) == (None, 0)
    assert not {"pause", "resume", "cancel"} & set(last.actions)
    await reached(pool, anyhow.id, State.RUNNING)


async def test_dependent_job_waits_for_all_dependencies(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    first, second = await running(pool), await running(pool)
    later = await pool.jobs.submit(SUSAN, sleeper(after=(first, second)))
    runtime.end(next(iter(runtime.launched)), 0)
    waits = await until_job(pool, later.id, lambda now: any(it.outcome for it in now.awaits))
    assert waits.reason is not None
    assert waits.reason.text == f"Waits for 1 of 2 jobs: job {second[:8]} prep."
    runtime.end([*runtime.launched][1], 0)
    await reached(pool, later.id, State.RUNNING)


async def test_wait_reason_gives_resume_command_for_paused_job(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    prep = await running(pool)
    later = await pool.jobs.submit(SUSAN, sleeper(after=(prep,)))
    await pool.jobs.act(SUSAN, prep, "pause")
    await runtime.until_noticed(1)
    runtime.end(next(iter(runtime.launched)), 143, EndedBy.NOTICE)
    await reached(pool, prep, State.PAUSED)
    reason = pool.jobs.detail(SUSAN, later.id).job.reason
    assert reason is not None
    assert reason.text == f"Waits for job {prep[:8]} prep (paused)."
    assert reason.remedy.startswith(f"`benchpool resume {prep[:8]}` resumes paused jobs.")


async def test_paused_dependent_job_queues_after_resume(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    prep = await running(pool)
    later = await pool.jobs.submit(SUSAN, sleeper(after=(prep,)))
    await pool.jobs.act(SUSAN, later.id, "pause")
    runtime.end(next(iter(runtime.launched)), 0)
    await until_job(pool, later.id, lambda now: now.awaits[0].outcome is State.SUCCEEDED)
    assert pool.jobs.detail(SUSAN, later.id).job.state is State.PAUSED
    await pool.jobs.act(SUSAN, later.id, "resume")
    await reached(pool, later.id, State.RUNNING)


async def test_succeeded_dependency_does_not_delay_job(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    prep = await running(pool)
    runtime.end(next(iter(runtime.launched)), 0)
    await reached(pool, prep, State.SUCCEEDED)
    later = await pool.jobs.submit(SUSAN, sleeper(after=(prep,)))
    await reached(pool, later.id, State.RUNNING)


async def test_invalid_dependencies_are_refused_at_submission(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    prep = await running(pool)
    with pytest.raises(NotFound, match="You have no job or array with the id"):
        await pool.jobs.submit(JOE, sleeper(after=(prep,)))
    with pytest.raises(NotFound, match="'nothing'"):
        await pool.jobs.submit(SUSAN, sleeper(after=("nothing",)))
    with pytest.raises(InvalidInput, match="Name the awaited jobs with --after ID"):
        await pool.jobs.submit(SUSAN, sleeper(after_any=True))
    runtime.end(next(iter(runtime.launched)), 1)
    await reached(pool, prep, State.FAILED)
    with pytest.raises(Refused, match="failed already, so this one would never run"):
        await pool.jobs.submit(SUSAN, sleeper(after=(prep,)))
    anyhow = await pool.jobs.submit(SUSAN, sleeper(after=(prep,), after_any=True))
    await reached(pool, anyhow.id, State.RUNNING)


async def test_rerun_waits_only_for_unfinished_dependencies(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    failed, on = await running(pool), await running(pool)
    later = await pool.jobs.submit(SUSAN, sleeper(after=(failed, on)))
    runtime.end(next(iter(runtime.launched)), 1)
    await reached(pool, later.id, State.CANCELLED)
    again, is_new = await run_again(pool.jobs, SUSAN, later.id, JobAgain())
    assert is_new
    assert [it.job for it in again.awaits] == [on]


async def test_preview_names_dependencies(pool: Pool) -> None:
    prep = await running(pool)
    preview = await pool.jobs.preview(SUSAN, sleeper(after=(prep,)))
    assert preview.starts == "waits"
    assert preview.text.startswith(f"Waits for job {prep[:8]} prep; 1 GPU within")


async def test_dependency_survives_restart(tmp_path: Path, runtime: ScriptedRuntime) -> None:
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        prep = await running(pool)
        later = await pool.jobs.submit(SUSAN, sleeper(after=(prep,)))
        await decided(pool, later.id)
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        again = pool.jobs.detail(SUSAN, later.id).job
        assert again.reason is not None
        assert again.reason.code == "waits-for-jobs"
        runtime.end(next(iter(runtime.launched)), 0)
        await reached(pool, later.id, State.RUNNING)


async def test_dependent_job_joins_end_of_queue(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(devices(4))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        prep = await running(pool)
        later = await pool.jobs.submit(SUSAN, sleeper(after=(prep,)))
        between = await pool.jobs.submit(SUSAN, sleeper())
        await decided(pool, between.id)
        runtime.end(next(iter(runtime.launched)), 0)
        await until_job(pool, later.id, lambda now: now.in_line_since is not None)
        order = [job.id for job in snapshots.in_line(pool.ledger)]
        assert order.index(between.id) < order.index(later.id)
