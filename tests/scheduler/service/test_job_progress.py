"""Progress of a job: one figure that survives pauses, and 100 % for a succeeded job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from benchpool.handles import line_of
from benchpool_scheduler.cli import words
from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.runtime import EndedBy, ReportedRun, WorkerProgress
from benchpool_scheduler.service import Pool
from benchpool_scheduler.web.job_rows import Reader, job_row
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices


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


def fraction(job: Job) -> float | None:
    return None if job.progress is None else job.progress.fraction


async def test_saved_progress_survives_pause_until_next_save(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    at = clock.now()
    runtime.report(WorkerProgress(worker, at, 0.77, "step 77", checkpoint_at=at))
    await until_job(pool, job.id, lambda now: fraction(now) == 0.77)
    await pool.jobs.act(SUSAN, job.id, "pause")
    await runtime.until_noticed(1)
    runtime.end(worker, 1, EndedBy.NOTICE, at=clock.now())
    await reached(pool, job.id, State.PAUSED)
    await pool.jobs.act(SUSAN, job.id, "resume")
    again = (await runtime.until_launched(2))[1]
    assert again.attempt == 2
    runtime.report(WorkerProgress(again, clock.now(), None, "cell 1", checkpoint_at=at))
    reported = await until_job(pool, job.id, lambda now: "cell 1" in words.note(now))
    assert fraction(reported) == 0.77
    clock.pass_s(60)
    now = clock.now()
    runtime.report(WorkerProgress(again, now, 0.3, "from the start", checkpoint_at=now))
    reported = await until_job(pool, job.id, lambda now: fraction(now) != 0.77)
    assert fraction(reported) == 0.3, "it has saved what it does now: that is how far it is"


async def test_repeated_checkpoint_report_is_recognized(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    # The checkpoint time is read from the machine's clock and converted with each report.
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    saved = clock.now()
    runtime.report(
        WorkerProgress(worker, saved, 0.4, "a", checkpoint_at=saved, checkpoint_step=400)
    )
    await until_job(pool, job.id, lambda now: fraction(now) == 0.4)
    clock.pass_s(60)
    again, now = saved + 2e-5, clock.now()
    runtime.report(WorkerProgress(worker, now, 0.63, "b", checkpoint_at=again, checkpoint_step=400))
    await until_job(pool, job.id, lambda now: fraction(now) == 0.63)
    await pool.jobs.act(SUSAN, job.id, "pause")
    await runtime.until_noticed(1)
    runtime.end(worker, 1, EndedBy.NOTICE, at=clock.now())
    await reached(pool, job.id, State.PAUSED)
    await pool.jobs.act(SUSAN, job.id, "resume")
    second = (await runtime.until_launched(2))[1]
    runtime.report(
        WorkerProgress(second, now, 0.41, "once more", checkpoint_at=saved, checkpoint_step=400)
    )
    reported = await until_job(pool, job.id, lambda now: "once more" in words.note(now))
    assert reported.progress is not None
    assert (reported.progress.fraction, reported.progress.previous_progress) == (0.41, 0.63)


async def test_time_left_uses_pace_of_current_attempt(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    # The job restored half of its progress from a checkpoint: that is not its pace.
    runtime.report(WorkerProgress(worker, clock.now(), 0.5, "read back"))
    reported = await until_job(pool, job.id, lambda now: fraction(now) == 0.5)
    assert reported.progress is not None
    assert reported.progress.ends is None
    clock.pass_s(600)
    runtime.report(WorkerProgress(worker, clock.now(), 0.6, "step 60"))
    reported = await until_job(pool, job.id, lambda now: fraction(now) == 0.6)
    assert reported.progress is not None
    assert reported.progress.ends is not None
    assert (reported.progress.ends - reported.progress.updated).total_seconds() == pytest.approx(
        2400
    )
    row = job_row(reported, (), (), Reader("susan", admin=False), reported.progress.updated)
    assert row.progress == "step 60, about 40 min left"
    later = msgspec.structs.replace(
        reported.progress, ends=datetime.now(UTC) + timedelta(minutes=40, seconds=-1)
    )
    now = msgspec.structs.replace(reported, progress=later)
    assert words.note(now) == "60 % step 60, about 40 min left"
    assert "about 40 min left" in line_of(now)
    runtime.end(worker)
    ended = await reached(pool, job.id, State.SUCCEEDED)
    assert ended.progress is not None
    assert ended.progress.ends is None


async def test_succeeded_job_has_full_progress(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    runtime.report(WorkerProgress(worker, 0.0, 0.96, "step 288 of 300"))
    await until_job(pool, job.id, lambda now: fraction(now) == 0.96)
    runtime.end(worker)
    ended = await reached(pool, job.id, State.SUCCEEDED)
    assert fraction(ended) == 1.0


async def test_page_terminal_and_notebook_show_same_progress(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    """The panel is tested with the same table of examples (``tests/phrases.json``)."""
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    runtime.report(WorkerProgress(worker, 0.0, 0.779, "step 233"))
    reported = await until_job(pool, job.id, lambda now: fraction(now) is not None)
    row = job_row(reported, (), (), Reader("susan", admin=False), reported.submitted)
    assert f"{row.percent} %" == "77 %"
    assert words.note(reported) == "77 % step 233"
    assert "77 %" in line_of(reported)


async def test_tracker_runs_of_all_attempts_outlive_job(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    first, second = (ReportedRun("mlflow", f"https://ml.example/#/runs/{n}") for n in (1, 2))
    runtime.report(WorkerProgress(worker, clock.now(), None, None, runs=(first,)))
    await until_job(pool, job.id, lambda now: len(now.tracker_runs) == 1)
    await pool.jobs.act(SUSAN, job.id, "pause")
    await runtime.until_noticed(1)
    runtime.end(worker, 1, EndedBy.NOTICE, at=clock.now())
    await reached(pool, job.id, State.PAUSED)
    await pool.jobs.act(SUSAN, job.id, "resume")
    again = (await runtime.until_launched(2))[1]
    hostile = ReportedRun("x", "javascript:alert(1)")
    runtime.report(WorkerProgress(again, clock.now(), None, None, runs=(first, second, hostile)))
    runtime.end(again, 0, at=clock.now())
    ended = await reached(pool, job.id, State.SUCCEEDED)
    assert [(run.text, run.url) for run in ended.tracker_runs] == [
        ("MLflow on ml.example", first.url),
        ("MLflow on ml.example", second.url),
    ]
    assert ended.progress is None
