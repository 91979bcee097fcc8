"""The course of a pause for the job's owner: the claimant, saved and lost work, and the resume.

The cost is an estimate until the job has left its GPUs, and a measurement afterwards.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job, Preemption, State
from benchpool_scheduler.contract.actions import ActionReason
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.phrases import pauses
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerProgress
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import (
    ADMIN,
    JEMMA,
    JOE,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices

SAVES_ON_NOTICE = """
import sys, time
from benchpool import checkpoint
print("ready", flush=True)
while not checkpoint.should_stop():
    time.sleep(0.02)
with checkpoint.commit(467) as folder:
    (folder / "weights").write_text("w")
sys.exit(7)
"""
NEVER_SAVES = 'print("ready", flush=True)\nimport time\ntime.sleep(1000)\n'


def moment(job: Job) -> tuple[str, str]:
    return ("", "") if job.pause is None else (job.pause.stage, job.pause.text)


async def make_room(pool: Pool, victim: Job) -> Job:
    """Submit the jobs of joe and jemma that reclaim GPUs, after the first output of the victim."""
    await pool.logs.wait(SUSAN, victim.id, offset=0)
    await pool.jobs.submit(JOE, sleeper(gpus=2, name="mine"))
    return await pool.jobs.submit(JEMMA, sleeper(gpus=2, name="hers"))


async def test_pause_with_checkpoint_loses_nothing(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, python_job(SAVES_ON_NOTICE, gpus=4, name="big"))
        claimant = await make_room(pool, job)
        gone = await until_job(pool, job.id, lambda now: moment(now)[0] == "saved")
        (cost,) = pool.jobs.detail(SUSAN, job.id).pauses
        assert cost.saved_step == 467
        assert cost.unsaved_gpu_s is not None
        # The job may take some time to end on a busy machine.
        assert moment(gone)[1] == pauses.what_was_saved(467, None, cost.unsaved_gpu_s / 4)
        assert "measured when it resumes" in cost.cost
        await pool.jobs.act(JEMMA, claimant.id, "cancel")
        back = await until_job(pool, job.id, lambda now: now.state is State.RUNNING)
        assert moment(back) == ("back", "back: attempt 2")
        (cost,) = back.preemptions
        assert cost.restart_gpu_s is not None
        assert cost.lost_gpu_s == pytest.approx(
            (cost.unsaved_gpu_s or 0) + cost.restart_gpu_s, abs=0.2
        )
        assert "estimate" not in cost.cost


async def test_pause_without_checkpoint_reports_lost_time(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, python_job(NEVER_SAVES, gpus=4, name="big"))
        await make_room(pool, job)
        gone = await until_job(pool, job.id, lambda now: moment(now)[0] == "saved")
        pattern = r"it had just begun, nothing lost|nothing was saved, \d+ s lost"
        assert re.fullmatch(pattern, moment(gone)[1]), "nothing is lost by a start of a moment"


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


def only(pool: Pool, job: Job) -> Preemption:
    (pause,) = pool.jobs.detail(SUSAN, job.id).pauses
    return pause


async def test_pause_cost_counts_unsaved_time_and_restart(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    """A checkpoint reported together with the end of the worker counts."""
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=4, name="big"))
    (worker,) = await runtime.until_launched(1)
    await reached(pool, job.id, State.RUNNING)
    clock.pass_s(240)
    await pool.jobs.submit(JOE, sleeper(gpus=2, name="mine"))
    hers = await pool.jobs.submit(JEMMA, sleeper(gpus=2, name="hers"))
    await reached(pool, job.id, State.PAUSING)
    pausing = pool.jobs.detail(SUSAN, job.id).job
    assert moment(pausing) == ("saving", "jemma needs 2 GPUs: saving")
    assert pausing.pause is not None
    assert pausing.pause.until is not None
    assert (pausing.pause.until - pausing.pause.at).total_seconds() == 20
    assert only(pool, job).cost == "20 min of one GPU (estimate)", "240 s, and 60 s of restart"
    clock.pass_s(12)
    saved = clock.now()
    clock.pass_s(2)
    progress = WorkerProgress(worker, saved, 0.62, "step 467", {}, saved, 467)
    runtime.report(progress)
    runtime.report(WorkerEnded(worker, clock.now(), 143, EndedBy.NOTICE))
    gone = await until_job(pool, job.id, lambda now: moment(now)[0] == "saved")
    assert moment(gone)[1] == "saved at step 467, nothing lost"
    assert only(pool, job).lost_gpu_s == 8, "two seconds on four GPUs"
    assert only(pool, job).cost == "8 s of one GPU; its restart is measured when it resumes"
    await reached(pool, hers.id, State.RUNNING)
    await pool.jobs.act(JEMMA, hers.id, "cancel")
    hers_worker = next(it for it in runtime.launched if it.job == hers.id)
    runtime.end(hers_worker)
    await reached(pool, job.id, State.RUNNING)
    assert only(pool, job).restart_gpu_s is not None
    assert "its restart" in only(pool, job).cost


async def test_pause_by_user_records_its_cost(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    (worker,) = await runtime.until_launched(1)
    await reached(pool, job.id, State.RUNNING)
    clock.pass_s(100)
    pausing = await pool.jobs.act(SUSAN, job.id, "pause", ActionReason("the data is wrong"))
    assert moment(pausing) == ("saving", "paused by susan (the data is wrong): saving")
    runtime.end(worker, 143, EndedBy.NOTICE, at=clock.now())
    paused = await reached(pool, job.id, State.PAUSED)
    assert moment(paused) == ("saved", "nothing was saved, 1 min lost")
    assert paused.preemptions == [], "they are for somebody else"
    assert (only(pool, job).by, only(pool, job).reason) == ("susan", "the data is wrong")
    assert only(pool, job).lost_gpu_s == 200
    await pool.jobs.act(SUSAN, job.id, "resume")
    assert moment(await reached(pool, job.id, State.RUNNING)) == ("back", "back: attempt 2")


async def test_pause_text_distinguishes_new_start_from_old_save(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    runtime.start_at_once = False
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    (first,) = await runtime.until_launched(1)
    runtime.begin(first, clock.now())
    await reached(pool, job.id, State.RUNNING)
    clock.pass_s(3)
    await pool.jobs.act(SUSAN, job.id, "pause")
    runtime.end(first, 143, EndedBy.NOTICE, at=clock.now())
    paused = await reached(pool, job.id, State.PAUSED)
    assert moment(paused) == ("saved", "it had just begun, nothing lost")

    await pool.jobs.act(SUSAN, job.id, "resume")
    second = (await runtime.until_launched(2))[1]
    runtime.begin(second, clock.now())
    await reached(pool, job.id, State.RUNNING)
    saved = clock.now()
    runtime.report(WorkerProgress(second, saved, 0.2, "step 100", {}, saved, 100))
    await until_job(pool, job.id, lambda now: now.progress is not None)
    await pool.jobs.act(SUSAN, job.id, "pause")
    runtime.end(second, 143, EndedBy.NOTICE, at=clock.now())
    await reached(pool, job.id, State.PAUSED)

    clock.pass_s(60)
    await pool.jobs.act(SUSAN, job.id, "resume")
    third = (await runtime.until_launched(3))[2]
    runtime.begin(third, clock.now())
    await reached(pool, job.id, State.RUNNING)
    clock.pass_s(240)
    await pool.jobs.act(SUSAN, job.id, "pause")
    runtime.end(third, 143, EndedBy.NOTICE, at=clock.now())
    paused = await reached(pool, job.id, State.PAUSED)
    assert moment(paused) == ("saved", "nothing new was saved, 4 min lost")


async def test_administrator_pause_is_resumed_only_by_administrator(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    (worker,) = await runtime.until_launched(1)
    await reached(pool, job.id, State.RUNNING)
    await pool.jobs.act(ADMIN, job.id, "pause", ActionReason("new driver on node-1"))
    leaving = pool.jobs.detail(SUSAN, job.id).job
    assert moment(leaving) == ("saving", "paused by ada (new driver on node-1): saving")
    assert "resume" not in leaving.actions
    with pytest.raises(Refused, match=r"held by an admin.* driver on node-1.* Ask ada"):
        await pool.jobs.act(SUSAN, job.id, "resume")
    runtime.end(worker, 143, EndedBy.NOTICE)
    await reached(pool, job.id, State.PAUSED)
    held = pool.jobs.detail(SUSAN, job.id).job
    assert held.reason is not None
    assert (held.reason.code, held.reason.text) == (
        "paused-by-administrator",
        "Paused by ada: new driver on node-1.",
    )
    assert "resume" not in held.actions
    assert "cancel" in held.actions
    assert "resume" in pool.jobs.detail(ADMIN, job.id).job.actions
    with pytest.raises(Refused) as refused:
        await pool.jobs.act(SUSAN, job.id, "resume")
    assert refused.value.code == "held-by-administrator"
    await pool.jobs.act(ADMIN, job.id, "resume")
    await reached(pool, job.id, State.RUNNING)


async def test_administrator_holds_job_paused_by_owner(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    (worker,) = await runtime.until_launched(1)
    await pool.jobs.act(SUSAN, job.id, "pause")
    runtime.end(worker, 143, EndedBy.NOTICE)
    await reached(pool, job.id, State.PAUSED)
    await pool.jobs.act(ADMIN, job.id, "pause", ActionReason("node-1 goes away"))
    with pytest.raises(Refused, match="node-1 goes away"):
        await pool.jobs.act(SUSAN, job.id, "resume")
    await pool.jobs.act(SUSAN, job.id, "cancel")


async def test_restarted_attempt_shows_previous_progress(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    runtime.report(WorkerProgress(worker, clock.now(), 0.63, "epoch 6"))
    await until_job(pool, job.id, lambda now: now.progress is not None)
    await pool.jobs.act(SUSAN, job.id, "pause")
    runtime.end(worker, 143, EndedBy.NOTICE, at=clock.now())
    await reached(pool, job.id, State.PAUSED)
    await pool.jobs.act(SUSAN, job.id, "resume")
    again = (await runtime.until_launched(2))[1]
    begun = await reached(pool, job.id, State.RUNNING)
    assert begun.progress is not None
    assert (begun.progress.fraction, begun.progress.previous_progress) == (0.0, 0.63)
    assert begun.progress.text is None, "attempt 2 has said nothing yet"
    clock.pass_s(5)
    runtime.report(WorkerProgress(again, clock.now(), 0.03, "epoch 1"))
    now = await until_job(pool, job.id, lambda now: now.progress.text == "epoch 1")  # type: ignore[union-attr]
    assert now.progress is not None
    assert (now.progress.fraction, now.progress.previous_progress) == (0.03, 0.63)
    runtime.report(WorkerProgress(again, clock.now(), 0.7, "epoch 7"))
    now = await until_job(pool, job.id, lambda now: now.progress.text == "epoch 7")  # type: ignore[union-attr]
    assert now.progress is not None
    assert now.progress.previous_progress is None
