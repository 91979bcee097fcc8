"""Workers of a gang start and end together; lost workers and preemptions are no failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import GpuState, State
from benchpool_scheduler.core.lifecycle.retries import MOST_LOST
from benchpool_scheduler.runtime import DeviceState, EndedBy, WorkerProgress
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
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
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        yield pool


async def test_gang_state_follows_its_last_worker(pool: Pool, runtime: ScriptedRuntime) -> None:
    runtime.start_at_once = False
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2, workers=2))
    first, second = await runtime.until_launched(2)
    assert runtime.launched[first].nodes == ("localhost", "localhost")
    assert runtime.launched[first].port == runtime.launched[second].port
    runtime.begin(first)
    assert (await until_job(pool, job.id, lambda now: now.attempt == 1)).state is State.STARTING
    runtime.begin(second)
    await reached(pool, job.id, State.RUNNING)
    runtime.end(first)
    runtime.end(second)
    assert (await reached(pool, job.id, State.SUCCEEDED)).exit_code == 0
    assert pool.jobs.detail(SUSAN, job.id).attempts[0].nodes == ["localhost", "localhost"]


async def test_worker_failure_stops_gang_and_first_failure_counts(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=1, workers=3, name="gang"))
    first, second, third = await runtime.until_launched(3)
    await reached(pool, job.id, State.RUNNING)
    runtime.end(second, 5, at=10.0)
    notices = await runtime.until_noticed(2)
    assert {worker for worker, _ in notices} == {first, third}
    assert "Worker 1 ended with exit code 5" in notices[0][1].text
    runtime.end(first, 143, EndedBy.NOTICE, at=11.0)
    runtime.end(third, 143, EndedBy.NOTICE, at=12.0)
    failed = await reached(pool, job.id, State.FAILED)
    assert failed.exit_code == 5
    assert failed.reason is not None
    assert failed.reason.text == "Worker 1 of gang ended with exit code 5."


async def test_lost_worker_requeues_job(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(workers=2))
    first, second = await runtime.until_launched(2)
    await reached(pool, job.id, State.RUNNING)
    runtime.end(first, None, EndedBy.LOST, text="its machine was restarted")
    (worker, notice), *_ = await runtime.until_noticed(1)
    assert (worker, notice.kind) == (second, "pause")
    runtime.end(second, 143, EndedBy.NOTICE)
    again = await until_job(pool, job.id, lambda now: now.attempt == 2)
    assert again.preemptions == []
    assert pool.jobs.detail(SUSAN, job.id).attempts[0].ended_by == "lost"


async def test_repeatedly_lost_job_is_paused(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    runtime.start_at_once = False
    job = await pool.jobs.submit(SUSAN, sleeper())
    for count in range(1, MOST_LOST + 1):
        worker = (await runtime.until_launched(count))[-1]
        runtime.end(worker, None, EndedBy.LOST, at=clock.now())
    paused = await reached(pool, job.id, State.PAUSED)
    assert paused.reason is not None
    assert paused.reason.code == "lost-repeatedly"
    assert paused.reason.text == (
        "It was lost 5 times in a row within 1 min of its start; the last time: its supervisor was "
        "killed or the machine restarted."
    )
    await pool.jobs.act(SUSAN, job.id, "resume")
    await until_job(pool, job.id, lambda now: now.attempt == MOST_LOST + 1)


@pytest.mark.parametrize(
    ("by", "code", "words"),
    [
        (EndedBy.TIME_LIMIT, "time-limit", "was ended at its time limit"),
        (EndedBy.OUT_OF_MEMORY, "out-of-memory", "memory ran out"),
        (EndedBy.COULD_NOT_START, "could-not-start", "could not be started"),
    ],
)
async def test_failure_reason_describes_cause(
    pool: Pool, runtime: ScriptedRuntime, by: EndedBy, code: str, words: str
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    runtime.end((await runtime.until_launched(1))[0], 137, by)
    failed = await reached(pool, job.id, State.FAILED)
    assert failed.reason is not None
    assert failed.reason.code == code
    assert words in failed.reason.text
    assert failed.reason.remedy


async def test_preemption_selects_job_with_newest_checkpoint(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    old = await pool.jobs.submit(SUSAN, sleeper(gpus=2, name="saved-long-ago"))
    new = await pool.jobs.submit(SUSAN, sleeper(gpus=2, name="saved-just-now"))
    more = await pool.jobs.submit(SUSAN, sleeper(gpus=2, name="third"))
    workers = {w.job: w for w in await runtime.until_launched(3)}
    clock.pass_s(1000)
    for job, ago in ((old, 900), (new, 1), (more, 900)):
        runtime.report(
            WorkerProgress(workers[job.id], clock.now(), 0.5, "x", checkpoint_at=clock.now() - ago)
        )
        await until_job(pool, job.id, lambda now: now.progress is not None)
    await pool.jobs.submit(JOE, sleeper(gpus=2))
    worker, notice = (await runtime.until_noticed(1))[0]
    assert worker.job == new.id
    assert notice.for_ == "joe"
    leaving = pool.jobs.detail(SUSAN, new.id).job
    assert leaving.preemptions[0].lost_gpu_s == pytest.approx(2 * 1 + 2 * 60)


async def test_reclaim_completes_after_service_restart(
    tmp_path: Path,
) -> None:
    first = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=first)) as pool:
        big = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
        await reached(pool, big.id, State.RUNNING)
        claimant = await pool.jobs.submit(JOE, sleeper(gpus=2))
        await reached(pool, big.id, State.PAUSING)
    second = ScriptedRuntime(devices(9))
    second.alive = set(first.alive)
    async with opened(make_pool(tmp_path, runtime=second)) as pool:
        worker, notice = (await second.until_noticed(1))[0]
        assert (worker.job, notice.kind, notice.for_) == (big.id, "pause", "joe")
        waits = await decided(pool, claimant.id)
        assert waits.reason is not None
        assert waits.reason.code == "waiting-for-victims"
        second.end(worker, 143, EndedBy.NOTICE)
        await reached(pool, claimant.id, State.RUNNING)


async def test_foreign_and_broken_gpus_are_skipped_and_shown(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    runtime.mark("GPU-0", DeviceState.FOREIGN)
    runtime.mark("GPU-1", DeviceState.BROKEN, "GPU is lost")
    await pool.housekeeping.look()
    for _ in range(6):
        await pool.jobs.submit(SUSAN, sleeper())
    await runtime.until_launched(4)
    used = {gpu for launch in runtime.launched.values() for gpu in launch.gpus}
    assert not used & {"GPU-0", "GPU-1"}
    status = pool.views.status(ADMIN)
    assert (status.counts[GpuState.FOREIGN], status.counts[GpuState.BROKEN]) == (1, 1)
    assert "1 used by others, 1 broken" in status.text
    assert status.health.problems == ["GPU 1 of localhost: GPU is lost."]
