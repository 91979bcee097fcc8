"""Each report of a job is an event for its watchers, and many at once are a single one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest

from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, MetricsQuery
from benchpool_scheduler.contract.sweeps import (
    EarlyStopping,
    ListedValues,
    SweepPlan,
    SweepRequest,
)
from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import MetricReport, remade
from benchpool_scheduler.curves.views import SHOWN
from benchpool_scheduler.runtime import ReportedValue, WorkerId, WorkerMetrics
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.jobs.curve_answers import CurveAnswers
from benchpool_scheduler.service.ledger.job_curves import JobCurves
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async

NINTH = f"name{SHOWN + 1}"
FIRST = tuple(f"name{number}" for number in range(1, SHOWN + 2))


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


def report(worker: WorkerId, step: int, **values: float | None) -> WorkerMetrics:
    reported = (ReportedValue(name, value, step, step) for name, value in values.items())
    return WorkerMetrics(worker, 0.0, tuple(reported))


@pytest.mark.parametrize(
    ("name", "value"),
    [("name1", None), ("name1", 1.0), (NINTH, 0.5), (NINTH, None), ("new", None)],
    ids=["nan", "repeated-value", "ninth-name", "ninth-name-nan", "new-name-nan"],
)
async def test_any_report_publishes_its_job(
    pool: Pool, runtime: ScriptedRuntime, name: str, value: float | None
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    (worker,) = await runtime.until_launched(1)
    runtime.report(report(worker, 1, **dict.fromkeys(FIRST, 1.0)))
    before = await until_job(pool, job.id, lambda now: now.metrics_updated is not None)
    runtime.report(report(worker, 2, **{name: value}))

    def is_later(now: Job) -> bool:
        assert now.metrics_updated is not None
        assert before.metrics_updated is not None
        return now.metrics_updated > before.metrics_updated

    now = await until_job(pool, job.id, is_later)
    assert now.metrics == before.metrics, "only the time shows this report"


async def test_many_reports_at_once_publish_once(tmp_path: Path) -> None:
    curves, published = JobCurves(tmp_path, lambda topic, text: None), list[Collection[str]]()
    curves.changed.subscribe(published.append)
    for step in range(50):
        for job in ("a", "b"):
            curves.take(job, MetricReport(1, (("loss", Reported(1.0, step, step)),)), 7.0)
    assert published == []
    await until_async(lambda: published)
    assert published == [{"a", "b"}]
    newest = curves.newest("a")
    assert newest is not None
    curves.take("a", MetricReport(1, (("loss", Reported(1.0, 49, 49)),)), 8.0)
    assert curves.newest("a") is newest, "a report that is known already is no news"
    await curves.close()


async def test_trial_is_stopped_early_by_ninth_metric(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    train = JobSubmission(entry=CommandEntry(["python3", "train.py", "--lr={lr}"]), name="rates")
    rates = ListedValues([0.1, 0.01, 0.001])
    plan = SweepPlan(
        {"lr": rates}, metric=NINTH, max_concurrent=3, early_stopping=EarlyStopping(10)
    )
    await pool.sweeps.begin(SUSAN, SweepRequest(train, plan))
    workers = await runtime.until_launched(3)
    for worker in workers:
        runtime.report(report(worker, 1, **dict.fromkeys(FIRST, 1.0)))
    for worker in workers:
        await until_job(pool, worker.job, lambda now: now.metrics_updated is not None)
    # The last one is judged last, whatever its number: a report is as late as its step.
    for step, (worker, loss) in enumerate(zip(workers, (0.3, 0.2, 0.9), strict=True), start=10):
        runtime.report(report(worker, step, **{NINTH: loss}))
        clock.pass_s(1)
    ((stopped, _),) = await runtime.until_noticed(1)
    assert stopped == workers[2]


async def test_watchers_of_one_report_share_its_answer() -> None:
    answers, query = CurveAnswers(), MetricsQuery(points=10)
    lines = remade([MetricReport(1, (("loss", Reported(1.0, 1.0, 1)),))])
    first, second = await asyncio.gather(
        *(answers.of("a", "train", lines, query) for _ in range(2))
    )
    assert first is second
    other = await answers.of("a", "train", lines, MetricsQuery(points=20))
    assert other == first
    later = remade([MetricReport(1, (("loss", Reported(0.5, 2.0, 2)),))])
    assert (await answers.of("a", "train", later, query)).curves[0].values == [0.5]
