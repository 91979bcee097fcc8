"""Sweeps: trials are jobs that start, report, pause and end; none is lost or duplicated."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State, TrialPlace
from benchpool_scheduler.contract.sweeps import (
    TASK,
    EarlyStopping,
    ListedValues,
    Sweep,
    SweepMethod,
    SweepPlan,
    SweepRequest,
    SweepsQuery,
    SweepState,
    SweepStop,
    SweptValues,
    ValueRange,
)
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Refused
from benchpool_scheduler.runtime import EndedBy, ReportedValue, WorkerId, WorkerMetrics
from benchpool_scheduler.service import Pool
from benchpool_scheduler.store.records import DropJob
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async

RATES: dict[str, SweptValues] = {"lr": ListedValues([0.1, 0.01, 0.001]), "seed": ListedValues([0])}
TRAIN = JobSubmission(entry=CommandEntry(["python3", "train.py", "--lr={lr}"]), name="rates")


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


def report(runtime: ScriptedRuntime, worker: WorkerId, step: int, loss: float, at: float) -> None:
    runtime.report(WorkerMetrics(worker, at, (ReportedValue("loss", loss, at, step),)))


async def comes_to(pool: Pool, sweep: str, state: SweepState) -> Sweep:
    return await until_async(
        lambda: pool.sweeps.show(SUSAN, sweep),
        f"the sweep is {state}",
        holds=lambda found: found.state is state,
    )


async def test_sweep_runs_each_combination_within_concurrency(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    plan = SweepPlan(RATES, metric="loss", max_concurrent=2)
    sweep = await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, plan))
    assert (sweep.size, len(sweep.trials), sweep.state) == (3, 2, SweepState.RUNNING)
    assert sweep.text == "2 of 3 trials begun: 2 under way. No trial has reported loss yet."
    first, second = await runtime.until_launched(2)
    launch = runtime.launched[first]
    assert list(launch.argv[-1:]) == ["--lr=0.1"]
    job = pool.jobs.detail(SUSAN, first.job).job
    assert (job.name, job.trial) == ("rates #0", TrialPlace(sweep.id, "rates", 0))
    for worker, loss in ((first, 0.9), (second, 0.2)):
        report(runtime, worker, 1, loss, clock.now())
        runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
    third = (await runtime.until_launched(3))[2]
    runtime.end(third, 1, EndedBy.ITSELF, at=clock.now())
    over = await comes_to(pool, sweep.id, SweepState.OVER)
    assert over.text == (
        "3 of 3 trials begun: 2 done, 1 failed. The lowest loss is 0.2, of trial 1."
    )
    assert [(row.number, row.value, row.state) for row in over.trials] == [
        (1, 0.2, "done"),
        (0, 0.9, "done"),
        (2, None, "failed"),
    ]
    assert over.best == 1


async def test_array_tasks_get_their_number_and_fail_independently(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    tasks = ListedValues(list(range(3, 17, 2)))
    plan = SweepPlan({TASK: tasks}, max_concurrent=2, array=True)
    fold = JobSubmission(entry=CommandEntry(["python3", "fold.py"]), name="folds")
    with pytest.raises(InvalidInput, match="a list of whole numbers from 0 on"):
        await pool.sweeps.begin(SUSAN, SweepRequest(fold, replace(plan, parameters=RATES)))
    array = await pool.sweeps.begin(SUSAN, SweepRequest(fold, plan))
    for begun in range(1, 8):
        worker = (await runtime.until_launched(begun))[begun - 1]
        assert len(runtime.launched) <= begun + 1, "two at a time"
        env, task = runtime.launched[worker].env, str(tasks.values[begun - 1])
        assert list(runtime.launched[worker].argv)[-2:] == ["python3", "fold.py"]
        for prefix in ("BENCHPOOL", "SLURM"):
            assert env[f"{prefix}_ARRAY_TASK_ID"] == task
            assert env[f"{prefix}_ARRAY_JOB_ID"] == array.id
            assert env[f"{prefix}_ARRAY_TASK_COUNT"] == "7"
        assert pool.jobs.detail(SUSAN, worker.job).job.name == f"folds #{task}"
        runtime.end(worker, 1, EndedBy.ITSELF, at=clock.now())
    over = await comes_to(pool, array.id, SweepState.OVER)
    assert over.text == "7 of 7 tasks begun: 7 failed."


async def test_worse_trial_is_stopped_early(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    plan = SweepPlan(RATES, metric="loss", max_concurrent=3, early_stopping=EarlyStopping(10))
    sweep = await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, plan))
    workers = await runtime.until_launched(3)
    for worker, loss in zip(workers, (0.3, 0.2, 0.9), strict=True):
        report(runtime, worker, 10, loss, clock.now())
        clock.pass_s(1)
    ((stopped, notice),) = await runtime.until_noticed(1)
    assert (stopped, notice.kind) == (workers[2], "cancel")
    runtime.end(stopped, 143, EndedBy.NOTICE, at=clock.now())
    job = await reached(pool, stopped.job, State.CANCELLED)
    assert job.reason is not None
    assert job.reason.code == "stopped-early"
    assert job.reason.text == (
        "Stopped early by sweep rates: with loss 0.9 at step 10 it is not among the best third."
    )
    for worker in workers[:2]:
        runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
    over = await comes_to(pool, sweep.id, SweepState.OVER)
    assert over.text.startswith("3 of 3 trials begun: 2 done, 1 stopped early.")


async def test_preempted_trial_repeating_a_passed_step_continues_after_restart(
    tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    plan = SweepPlan(RATES, metric="loss", max_concurrent=3, early_stopping=EarlyStopping(10))
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        sweep = (await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, plan))).id
        workers = await runtime.until_launched(3)
        for number, loss in enumerate((0.5, 0.45, 0.2)):
            report(runtime, workers[number], 10, loss, clock.now())
            await until_value(pool, sweep, number, loss)
            clock.pass_s(1)
        await pool.sweeps.runner.carry_on(sweep)
        await pool.jobs.act(SUSAN, workers[0].job, "pause")
        await runtime.until_noticed(1)
        runtime.end(workers[0], 143, EndedBy.NOTICE, at=clock.now())
        await reached(pool, workers[0].job, State.PAUSED)
        await pool.jobs.act(SUSAN, workers[0].job, "resume")
        resumed = (await runtime.until_launched(4))[3]
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        report(runtime, resumed, 10, 0.48, clock.now())
        await until_value(pool, sweep, 0, 0.48)
        await pool.sweeps.runner.carry_on(sweep)
        assert {notice.kind for _, notice in runtime.notices} == {"pause"}


async def until_value(pool: Pool, sweep: str, number: int, value: float) -> None:
    """Wait until a trial has reported a value."""
    await until_async(
        lambda: pool.sweeps.show(SUSAN, sweep),
        f"trial {number} has reported {value}",
        holds=lambda found: {row.number: row.value for row in found.trials}[number] == value,
    )


async def test_stopped_sweep_cancels_trials_unless_let_finish(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    plan = SweepPlan(RATES, max_concurrent=1)
    sweep = await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, plan))
    (worker,) = await runtime.until_launched(1)
    with pytest.raises(NotFound):
        await pool.sweeps.stop(JOE, sweep.id, SweepStop())
    with pytest.raises(InvalidInput, match=r"This sweep belongs to susan, .*on the sweep's page\."):
        await pool.sweeps.stop(ADMIN, sweep.id, SweepStop())
    ending = await pool.sweeps.stop(SUSAN, sweep.id, SweepStop(let_finish=True))
    assert ending.state is SweepState.ENDING
    assert "No further trial begins: its owner stopped it." in ending.text
    assert runtime.notices == []
    await pool.sweeps.stop(SUSAN, sweep.id[:6], SweepStop())
    ((stopped, notice),) = await runtime.until_noticed(1)
    assert (stopped, notice.text) == (worker, "susan stopped sweep rates.")
    runtime.end(worker, 0, EndedBy.NOTICE, at=clock.now())
    over = await comes_to(pool, sweep.id, SweepState.OVER)
    assert len(over.trials) == 1
    assert [it.id for it in await pool.sweeps.select(SUSAN, SweepsQuery())] == [sweep.id]
    assert await pool.sweeps.select(JOE, SweepsQuery(all=True)) == []


async def test_best_trial_finishes_while_others_are_stopped(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    plan = SweepPlan({"seed": ListedValues([0, 1, 2, 3])}, metric="loss", max_concurrent=3)
    sweep = await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, plan))
    workers = await runtime.until_launched(3)
    with pytest.raises(InvalidInput, match="No trial of rates has reported a metric yet"):
        await pool.sweeps.stop(SUSAN, sweep.id, SweepStop(keep_best=True))
    for number, loss in enumerate((0.5, 0.2, 0.4)):
        report(runtime, workers[number], 1, loss, clock.now())
        await until_value(pool, sweep.id, number, loss)
    for asked in (SweepStop(keep_best=True), SweepStop(keep_best=True), SweepStop(let_finish=True)):
        ending = await pool.sweeps.stop(SUSAN, sweep.id, asked)
        noticed = [worker for worker, _ in await runtime.until_noticed(2)]
        assert (ending.state, noticed) == (SweepState.ENDING, [workers[0], workers[2]])
    report(runtime, workers[0], 2, 0.1, clock.now())
    for worker in noticed:
        runtime.end(worker, 0, EndedBy.NOTICE, at=clock.now())
    await reached(pool, workers[2].job, State.CANCELLED)
    assert (await pool.sweeps.show(SUSAN, sweep.id)).state is SweepState.ENDING
    runtime.end(workers[1], 0, EndedBy.ITSELF, at=clock.now())
    over = await comes_to(pool, sweep.id, SweepState.OVER)
    assert {row.number: row.state for row in over.trials} == {
        0: "stopped-early",
        1: "done",
        2: "stopped-early",
    }


async def test_invalid_job_starts_no_sweep(pool: Pool) -> None:
    plan = SweepPlan(RATES)
    for submission, refusal in (
        (JobSubmission(entry=TRAIN.entry, gpus=99), (Refused, InvalidInput)),
        (JobSubmission(entry=TRAIN.entry, project="joe"), (Forbidden,)),
    ):
        with pytest.raises(refusal):
            await pool.sweeps.begin(SUSAN, SweepRequest(submission, plan))
    assert await pool.sweeps.select(SUSAN, SweepsQuery()) == []


async def test_sweep_preview_shows_cost_within_quota(
    pool: Pool,
) -> None:
    plan = SweepPlan(RATES, max_concurrent=4)
    preview = await pool.sweeps.preview(SUSAN, SweepRequest(TRAIN, plan, trial_hours=5))
    assert preview.text == (
        "3 trials, about 15.0 GPU-hours; 10 h if 2 run at a time, limited by your quota of 2 GPUs."
    )
    assert preview.first == [{"lr": lr, "seed": 0} for lr in (0.1, 0.01, 0.001)]
    unknown = await pool.sweeps.preview(SUSAN, SweepRequest(TRAIN, plan))
    assert "How long one takes is not known" in unknown.text
    assert await pool.sweeps.select(SUSAN, SweepsQuery()) == []


async def test_repeated_key_returns_same_sweep(pool: Pool) -> None:
    asked = SweepRequest(TRAIN, SweepPlan(RATES, max_concurrent=1), key="k1")
    first = await pool.sweeps.begin(SUSAN, asked)
    assert (await pool.sweeps.begin(SUSAN, asked)).id == first.id
    other = SweepRequest(TRAIN, SweepPlan(RATES, max_concurrent=2), key="k1")
    with pytest.raises(Refused, match="with other content"):
        await pool.sweeps.begin(SUSAN, other)


async def test_trial_result_outlives_its_job(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    plan = SweepPlan({"lr": ListedValues([0.1])}, metric="loss")
    sweep = await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, plan))
    (worker,) = await runtime.until_launched(1)
    report(runtime, worker, 7, 0.4, clock.now())
    runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
    await comes_to(pool, sweep.id, SweepState.OVER)
    await pool.ledger.commit(DropJob(worker.job))
    (row,) = (await pool.sweeps.show(SUSAN, sweep.id)).trials
    assert (row.job, row.state, row.value, row.step) == (None, "done", 0.4, 7)


@dataclass
class Trials:
    """Simulated workers of a sweep: they report, pause, get lost, and end."""

    runtime: ScriptedRuntime
    drawing: random.Random
    steps: dict[str, int] = field(default_factory=dict)
    ended: set[WorkerId] = field(default_factory=set)
    pauses: int = 0

    async def move(self, pool: Pool, clock: FakeClock) -> None:
        """Let each running worker report, and some of them end or pause."""
        stopped = {worker for worker, _ in self.runtime.notices}
        alive = [it for it in self.runtime.launched if it not in self.ended]
        for worker in [it for it in alive if it in stopped]:
            self.end(worker, EndedBy.NOTICE, clock, code=1)
        alive = [it for it in alive if it not in stopped]
        for worker in alive:
            step = self.steps.get(worker.job, 0) + 1
            self.steps[worker.job] = step
            loss = self.drawing.random() / step
            report(self.runtime, worker, step, loss, clock.now())
            if step >= 9:
                self.end(worker, EndedBy.ITSELF, clock)
            elif self.drawing.random() < 0.05:
                self.end(worker, EndedBy.LOST, clock, code=None)
                self.pauses += 1
            elif self.drawing.random() < 0.1:
                await self.pause(pool, worker)
        clock.pass_s(1)

    async def pause(self, pool: Pool, worker: WorkerId) -> None:
        try:
            await pool.jobs.act(SUSAN, worker.job, "pause")
            await pool.jobs.act(SUSAN, worker.job, "resume")
        except Refused:
            return  # it has ended meanwhile
        self.pauses += 1

    def end(self, worker: WorkerId, by: EndedBy, clock: FakeClock, code: int | None = 0) -> None:
        self.ended.add(worker)
        self.runtime.end(worker, code, by, at=clock.now())


@pytest.mark.timeout(300)
async def test_sweep_runs_each_trial_once_through_random_faults(
    tmp_path: Path, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    plan = SweepPlan(
        {"lr": ValueRange(1e-5, 1e-1, log=True)},
        method=SweepMethod.RANDOM,
        metric="loss",
        trials=200,
        max_concurrent=6,
        early_stopping=EarlyStopping(2),
    )
    trials = Trials(runtime, random.Random(7))
    sweep, over = "", None
    while over is None:
        async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
            if not sweep:
                sweep = (await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, plan))).id
            for _ in range(60):
                await trials.move(pool, clock)
                await asyncio.sleep(0.01)
                found = await pool.sweeps.show(SUSAN, sweep)
                if found.state is SweepState.OVER:
                    over = found
                    break
            jobs = [it.name for it in pool.jobs.select(SUSAN, limit=1000)]
    assert sorted(jobs) == sorted(f"rates #{number}" for number in range(200))
    assert sorted(row.number for row in over.trials) == list(range(200))
    assert {row.state for row in over.trials} == {"done", "stopped-early"}
    assert trials.pauses > 20
