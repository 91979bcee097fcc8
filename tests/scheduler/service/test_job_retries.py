"""Failed jobs are retried as configured by site and owner, and show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId, WorkerProgress
from benchpool_scheduler.service import Pool
from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, decided, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import STARTED, ScriptedRuntime, devices, machine

YAML = """
version: 1
projects: [{name: story, quota: 8, members: [susan]}]
retries:
  gpu_error: {pause_s: 0}
  exit_code: {pause_s: 0}
  out_of_memory: {times: 1, pause_s: 0}
"""


def pool_of(tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock, text: str = YAML) -> Pool:
    return make_pool(tmp_path, runtime=runtime, clock=clock, configuration=load(text))


async def submitted(pool: Pool, **asked: object) -> Job:
    return await pool.jobs.submit(SUSAN, sleeper(project="story", **asked))


def fail(
    runtime: ScriptedRuntime,
    worker: WorkerId,
    clock: FakeClock,
    *,
    cause: EndCause | None = None,
    traceback: str | None = None,
) -> None:
    runtime.alive.discard(worker)
    event = WorkerEnded(worker, clock.now(), 1, EndedBy.ITSELF, None, None, cause, traceback)
    runtime.report(event)


async def test_retries_stop_at_repeated_traceback(
    tmp_path: Path,
) -> None:
    runtime, clock = ScriptedRuntime(devices(2)), FakeClock()
    async with opened(pool_of(tmp_path, runtime, clock)) as pool:
        job = await submitted(pool, retries=3)
        for number, mark in enumerate(["a", "b", "a"], 1):
            worker = (await runtime.until_launched(number))[-1]
            await until_job(pool, job.id, lambda now: now.state is State.RUNNING)
            fail(runtime, worker, clock, traceback=mark)
        failed = await reached(pool, job.id, State.FAILED)
        assert failed.attempt == 3
        assert failed.reason is not None
        assert failed.reason.text.endswith(
            "It is not tried again: the traceback is the same as before one of its retries."
        )
        retried = pool.jobs.detail(SUSAN, job.id).retried
        assert retried == "Tried again twice after exit code 1; it started over."


async def test_retry_count_survives_restart(tmp_path: Path) -> None:
    runtime, clock = ScriptedRuntime(devices(2)), FakeClock()
    async with opened(pool_of(tmp_path, runtime, clock)) as pool:
        job = await submitted(pool, retries=1)
        fail(runtime, (await runtime.until_launched(1))[0], clock)
        second = (await runtime.until_launched(2))[-1]
        await until_job(pool, job.id, lambda now: now.state is State.RUNNING and now.attempt == 2)
        await pool.close()
    async with opened(pool_of(tmp_path, runtime, clock)) as pool:
        fail(runtime, second, clock)
        failed = await reached(pool, job.id, State.FAILED)
    assert failed.reason is not None
    assert failed.reason.text == (
        "sleep ended with exit code 1. It is not tried again: it was retried once after exit-code, "
        "which is the limit."
    )


async def test_gpu_error_retries_on_another_node(
    tmp_path: Path,
) -> None:
    runtime, clock = ScriptedRuntime((*machine("node-3"), *machine("node-4"))), FakeClock()
    async with opened(pool_of(tmp_path, runtime, clock)) as pool:
        job = await submitted(pool, gpus=4)
        worker = (await runtime.until_launched(1))[0]
        await until_job(pool, job.id, lambda now: now.state is State.RUNNING)
        first = runtime.launched[worker].nodes[0]
        gpu = runtime.launched[worker].gpus[0]
        pool.metering.live.see([HeldSample(GpuSample(STARTED + 1, 1.0, gpu, xid=79))])
        saved = WorkerProgress(worker, clock.now(), 0.5, None, {}, clock.now(), 1200)
        runtime.report(saved)
        fail(runtime, worker, clock, traceback="a")
        second = (await runtime.until_launched(2))[-1]
        assert runtime.launched[second].nodes[0] != first
        assert pool.jobs.detail(SUSAN, job.id).retried == (
            f"Tried again once after an XID 79 on {first}; "
            "it resumes from its checkpoint of step 1200."
        )


async def test_gpu_error_retries_on_single_node(tmp_path: Path) -> None:
    runtime, clock = ScriptedRuntime(devices(2)), FakeClock()
    async with opened(pool_of(tmp_path, runtime, clock)) as pool:
        job = await submitted(pool)
        worker = (await runtime.until_launched(1))[0]
        fail(runtime, worker, clock, cause=EndCause.GPU_ERROR)
        await until_job(pool, job.id, lambda now: now.state is State.RUNNING and now.attempt == 2)


async def test_retry_pause_is_shown_as_reason(tmp_path: Path) -> None:
    runtime, clock = ScriptedRuntime(devices(2)), FakeClock()
    text = YAML.replace("out_of_memory: {times: 1, pause_s: 0}", "out_of_memory: {times: 1}")
    async with opened(pool_of(tmp_path, runtime, clock, text)) as pool:
        job = await submitted(pool)
        worker = (await runtime.until_launched(1))[0]
        runtime.end(worker, 137, EndedBy.OUT_OF_MEMORY, clock.now())
        await reached(pool, job.id, State.QUEUED)
        waiting = await decided(pool, job.id)
        assert waiting.reason is not None
        assert waiting.reason.code == "tries-again"
        assert waiting.reason.text == (
            "It is tried again 30 s after the end of attempt 1, which ended by running out of "
            "memory."
        )
        clock.pass_s(31.0)
        pool.want_pass()
        await until_job(pool, job.id, lambda now: now.state is State.RUNNING and now.attempt == 2)


@pytest.mark.parametrize("action", ["pause", "cancel"])
async def test_job_stopped_by_owner_is_not_retried(tmp_path: Path, action: str) -> None:
    runtime, clock = ScriptedRuntime(devices(2)), FakeClock()
    async with opened(pool_of(tmp_path, runtime, clock)) as pool:
        job = await submitted(pool, retries=3)
        worker = (await runtime.until_launched(1))[0]
        await until_job(pool, job.id, lambda now: now.state is State.RUNNING)
        await pool.jobs.act(SUSAN, job.id, action)
        await runtime.until_noticed(1)
        fail(runtime, worker, clock, traceback="a")
        ended = await reached(pool, job.id, State.PAUSED if action == "pause" else State.CANCELLED)
        assert ended.attempt == 1
        assert pool.jobs.detail(SUSAN, job.id).retried == ""
