"""Metrics that workers report by step form one curve across pauses, kept as long as the job."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import (
    CommandEntry,
    Curve,
    JobMetrics,
    JobSubmission,
    MetricsQuery,
    State,
)
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.runtime import EndedBy, ReportedValue, WorkerId, WorkerMetrics
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.pool.subscriptions import as_report
from benchpool_scheduler.store.curve_files import FOLDER, CurveFiles, copy_into, put_back
from benchpool_scheduler.store.records import DropJob
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.records import EXIT
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async


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


def losses(worker: WorkerId, at: float, **by_step: float) -> WorkerMetrics:
    values = (
        ReportedValue("loss", value, at + int(step[1:]), int(step[1:]))
        for step, value in by_step.items()
    )
    return WorkerMetrics(worker, at, tuple(values))


async def curves(pool: Pool, job: str, **query: int | str) -> JobMetrics:
    return await pool.logs.metrics(SUSAN, job, MetricsQuery(**query))  # type: ignore[arg-type]


async def loss_of(pool: Pool, job: str, points: int) -> Curve:
    """Return the curve of the loss once it has this number of points."""
    found = await until_async(
        lambda: curves(pool, job),
        holds=lambda found: found.curves and len(found.curves[0].steps) == points,
    )
    return found.curves[0]


async def test_resumed_job_has_one_curve_without_rolled_back_steps(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    runtime.report(losses(worker, clock.now(), s1=3.0, s2=2.0, s3=1.0, s4=0.5))
    first = await loss_of(pool, job.id, 4)
    assert first.min is not None
    assert (first.min.step, first.min.value, first.goal) == (4, 0.5, "min")
    await pool.jobs.act(SUSAN, job.id, "pause")
    await runtime.until_noticed(1)
    runtime.end(worker, 1, EndedBy.NOTICE, at=clock.now())
    await reached(pool, job.id, State.PAUSED)
    await pool.jobs.act(SUSAN, job.id, "resume")
    again = (await runtime.until_launched(2))[1]
    runtime.report(losses(again, clock.now() + 100, s3=1.2))
    line = await loss_of(pool, job.id, 3)
    assert (line.steps, line.values, line.attempts) == ([1, 2, 3], [3.0, 2.0, 1.2], [1, 1, 2])
    assert line.last is not None
    assert line.last.value == 1.2


async def test_job_shows_newest_metrics_until_its_end(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    runtime.report(losses(worker, clock.now(), s1=3.0, s2=2.5))
    await until_job(pool, job.id, lambda now: now.metrics == {"loss": 2.5})
    runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
    ended = await reached(pool, job.id, State.SUCCEEDED)
    assert ended.metrics == {}
    assert [it.name for it in (await curves(pool, job.id)).curves] == ["loss"]


async def test_invisible_job_shows_no_curve(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    with pytest.raises(NotFound):
        await pool.logs.metrics(JOE, job.id, MetricsQuery())
    assert (await curves(pool, job.id)).curves == []


async def test_curves_survive_restart_and_are_removed_with_job(
    tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    folder, copy = tmp_path / "scheduler" / FOLDER, tmp_path / "copy"
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        (worker,) = await runtime.until_launched(1)
        runtime.report(losses(worker, clock.now(), s1=3.0, s2=2.0))
        before = await loss_of(pool, job.id, 2)
        runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
        await reached(pool, job.id, State.SUCCEEDED)
    assert copy_into(folder, copy) == 1
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        assert (await curves(pool, job.id)).curves == [before]
        await pool.ledger.commit(DropJob(job.id))
        await pool.curves.write()
        assert not list(folder.iterdir())
    assert put_back(copy, folder) == 1
    assert put_back(copy, folder) == 0
    assert len(CurveFiles(folder).read(job.id)["loss"]) == 2


LEARNS = """
import os, pathlib, time
from benchpool.metrics import log
for step in range(30):
    log(loss=30 - step, step=step)
    log(bare=step)
while not pathlib.Path("go-on").exists():
    time.sleep(0.02)
log(loss=0, step=30)
log(bare=30)
"""


async def test_restarted_service_records_no_metric_twice(
    tmp_path: Path,
) -> None:
    entry = CommandEntry([sys.executable, "-c", LEARNS])
    (tmp_path / "run").mkdir()
    asked = JobSubmission(entry, working_dir=str(tmp_path / "run"))
    first = make_pool(tmp_path)
    await first.open()
    job = await first.jobs.submit(SUSAN, asked)
    before = await loss_of(first, job.id, 30)
    await first.close()
    async with opened(make_pool(tmp_path)) as pool:
        (tmp_path / "run" / "go-on").touch()
        await reached(pool, job.id, State.SUCCEEDED)
        loss = await loss_of(pool, job.id, 31)
        assert loss.steps == [*before.steps, 30]
        bare = next(it for it in (await curves(pool, job.id)).curves if it.name == "bare")
        assert bare.values == [float(it) for it in range(31)]


async def test_reports_of_downtime_are_recorded_after_job_end(tmp_path: Path) -> None:
    entry = CommandEntry([sys.executable, "-c", LEARNS])
    (tmp_path / "run").mkdir()
    first = make_pool(tmp_path)
    await first.open()
    job = await first.jobs.submit(SUSAN, JobSubmission(entry, working_dir=str(tmp_path / "run")))
    await loss_of(first, job.id, 30)
    await first.close()
    (tmp_path / "run" / "go-on").touch()
    await until_async(Folders(tmp_path).worker(WorkerId(job.id, 1, 0)).joinpath(EXIT).exists)
    async with opened(make_pool(tmp_path)) as pool:
        await reached(pool, job.id, State.SUCCEEDED)
        assert (await loss_of(pool, job.id, 31)).values[-1] == 0.0


async def test_truncated_line_keeps_remaining_metrics(tmp_path: Path) -> None:
    files = CurveFiles(tmp_path)
    progress = losses(WorkerId("abcd", 1, 0), 0.0, s1=3.0)
    assert files.append("abcd", [as_report(progress)], 1_000)
    with (tmp_path / "abcd.jsonl").open("ab") as file:
        file.write(b'[1,[["loss",[2.0')
    assert files.append("abcd", [as_report(losses(WorkerId("abcd", 1, 0), 0.0, s2=2.0))], 1_000)
    lines = files.read("abcd")
    assert [(it.step, it.value) for it in lines["loss"]] == [(1, 3.0), (2, 2.0)]
    assert files.rewrite("abcd", lines) < 200
    assert files.read("abcd") == lines


async def test_coarse_curve_keeps_last_min_and_max(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    steps = {f"s{step}": float(step % 10) for step in range(200)}
    runtime.report(losses(worker, clock.now(), **steps))
    fine = await loss_of(pool, job.id, 200)
    (coarse,) = (await curves(pool, job.id, points=20, name="loss")).curves
    assert len(coarse.steps) <= 20
    assert (coarse.last, coarse.min, coarse.max) == (fine.last, fine.min, fine.max)
    assert (await curves(pool, job.id, name="lr")).curves == []
