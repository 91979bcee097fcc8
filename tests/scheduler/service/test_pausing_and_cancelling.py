"""Actions of users on jobs: pause, resume and cancel, in every state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.actions import ActionReason
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_support.pools import (
    JOE,
    SUSAN,
    decided,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
)
from benchpool_support.scripted import ScriptedRuntime, devices


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(9))


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime) -> AsyncIterator[Pool]:
    pool = make_pool(tmp_path, runtime=runtime)
    await pool.open()
    yield pool
    await pool.close()


async def test_paused_job_waits_until_resumed(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    await reached(pool, job.id, State.RUNNING)
    pausing = await pool.jobs.act(SUSAN, job.id, "pause", ActionReason("the data is wrong"))
    assert pausing.state is State.PAUSING
    (worker, notice), *_ = await runtime.until_noticed(1)
    assert (notice.kind, notice.text) == ("pause", "Paused by susan: the data is wrong.")
    runtime.end(worker, 143, EndedBy.NOTICE)
    paused = await reached(pool, job.id, State.PAUSED)
    assert paused.reason is not None
    assert (paused.reason.code, paused.preemptions) == ("paused-by-user", [])
    assert (await pool.jobs.act(SUSAN, job.id, "pause")).state is State.PAUSED
    resumed = await pool.jobs.act(SUSAN, job.id, "resume")
    assert resumed.state is State.QUEUED
    again = await reached(pool, job.id, State.RUNNING)
    assert again.attempt == 2


async def test_exit_0_during_pause_succeeds(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    await reached(pool, job.id, State.RUNNING)
    await pool.jobs.act(SUSAN, job.id, "pause")
    runtime.end((await runtime.until_noticed(1))[0][0], 0)
    assert (await reached(pool, job.id, State.SUCCEEDED)).exit_code == 0


async def test_resume_during_pause_requeues_job(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    await reached(pool, job.id, State.RUNNING)
    await pool.jobs.act(SUSAN, job.id, "pause")
    assert (await pool.jobs.act(SUSAN, job.id, "resume")).state is State.PAUSING
    runtime.end((await runtime.until_noticed(1))[0][0], 143, EndedBy.NOTICE)
    assert (await reached(pool, job.id, State.RUNNING)).attempt == 2


async def test_cancel_completes_when_last_process_ends(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    await reached(pool, job.id, State.RUNNING)
    asked = await pool.jobs.act(SUSAN, job.id, "cancel")
    assert asked.state is State.RUNNING
    assert asked.reason is not None
    assert asked.reason.code == "cancelling"
    worker, notice = (await runtime.until_noticed(1))[0]
    assert notice.kind == "cancel"
    runtime.end(worker, 137, EndedBy.NOTICE)
    done = await reached(pool, job.id, State.CANCELLED)
    assert (done.exit_code, done.reason and done.reason.text) == (137, "Cancelled by susan.")
    assert (await pool.jobs.act(SUSAN, job.id, "cancel")).state is State.CANCELLED


async def test_cancel_overrides_pause_in_progress(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    await reached(pool, job.id, State.RUNNING)
    await pool.jobs.act(SUSAN, job.id, "pause")
    await pool.jobs.act(SUSAN, job.id, "cancel")
    notices = await runtime.until_noticed(2)
    assert [notice.kind for _, notice in notices] == ["pause", "cancel"]
    runtime.end(notices[0][0], 143, EndedBy.NOTICE)
    await reached(pool, job.id, State.CANCELLED)


async def test_queued_job_is_paused_and_cancelled_immediately(pool: Pool) -> None:
    await pool.jobs.submit(SUSAN, sleeper(gpus=6))
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
    await decided(pool, job.id)
    assert (await pool.jobs.act(SUSAN, job.id, "pause")).state is State.PAUSED
    assert (await pool.jobs.act(SUSAN, job.id, "resume")).state is State.QUEUED
    assert (await pool.jobs.act(SUSAN, job.id, "cancel")).state is State.CANCELLED


async def test_failure_reason_names_job_and_escapes_characters(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(name="short"))
    cause = "it failed with ValueError: no\u202esuch (train.py, line 2)"
    runtime.end((await runtime.until_launched(1))[0], 1, text=cause)
    failed = await reached(pool, job.id, State.FAILED)
    assert failed.reason is not None
    shown = failed.reason.text
    assert shown.startswith("short failed with ValueError: no")
    assert shown.endswith("such (train.py, line 2).")
    assert "\u202e" not in shown
    assert failed.reason.numbers == {"exit_code": 1, "line": 2, "file": "train.py"}


async def test_ended_job_refuses_every_action(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(name="short"))
    runtime.end((await runtime.until_launched(1))[0], 3)
    failed = await reached(pool, job.id, State.FAILED)
    assert failed.reason is not None
    assert failed.reason.text == "short ended with exit code 3."
    for verb in ("pause", "resume", "cancel"):
        with pytest.raises(Refused, match=r"has ended \(failed\) and cannot") as caught:
            await pool.jobs.act(SUSAN, job.id, verb)
        assert caught.value.code == "job-ended"


async def test_preempted_job_paused_by_user_stays_paused(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    big = await pool.jobs.submit(SUSAN, sleeper(gpus=6))
    await reached(pool, big.id, State.RUNNING)
    await pool.jobs.submit(JOE, sleeper(gpus=2))
    await reached(pool, big.id, State.PAUSING)
    await pool.jobs.act(SUSAN, big.id, "pause")
    runtime.end((await runtime.until_noticed(1))[0][0], 143, EndedBy.NOTICE)
    paused = await reached(pool, big.id, State.PAUSED)
    assert len(paused.preemptions) == 1


async def test_process_ignoring_notice_is_killed_after_grace(
    tmp_path: Path,
) -> None:
    from benchpool_support.pools import STORY, story

    configuration = story(STORY.replace("grace_s: 20", "grace_s: 1"))
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    real = make_pool(tmp_path / "real", configuration=configuration)
    async with opened(real) as pool:
        job = await pool.jobs.submit(SUSAN, python_job(stubborn))
        await reached(pool, job.id, State.RUNNING)
        await pool.logs.wait(SUSAN, job.id, offset=0)
        await pool.jobs.act(SUSAN, job.id, "cancel")
        assert (await reached(pool, job.id, State.CANCELLED)).exit_code == 137
