"""Above its minimum a gang gains and loses single workers (R10), which its result ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobId,
    NodeName,
    Plan,
    Preempt,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.execution import passes
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices


def at(*gpus: str) -> tuple[Worker, ...]:
    return tuple(Worker(NodeName("localhost"), (GpuId(gpu),)) for gpu in gpus)


async def carry_out(pool: Pool, *commands: Start | Preempt) -> None:
    """Apply commands of a plan, as the loop of passes does."""
    engine = pool
    async with engine.ledger.lock:
        draft = UnitOfWork(engine.ledger)
        plan = Plan(commands=commands, reasons={}, shares={})
        passes.apply(draft, engine.observed.now, plan, engine.observed.settings.clock.now())
        await engine.ledger.commit(*draft.changes())
        engine.actions.carry_out(draft)
    await engine.actions.finish()


def seen(pool: Pool) -> Snapshot:
    engine = pool
    return snapshots.snapshot(
        engine.ledger, engine.observed.now, engine.observed.settings.clock.now()
    )


async def test_removed_worker_frees_gpu_without_failure(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(workers=3, min_workers=1))
        workers = await runtime.until_launched(3)
        await reached(pool, job.id, State.RUNNING)
        last = runtime.launched[workers[2]].gpus[0]
        await carry_out(pool, Preempt(JobId(job.id), at(last), None, "R18", 0.0))
        ((leaving, notice),) = await runtime.until_noticed(1)
        assert (leaving, notice.kind) == (workers[2], "pause")
        shrunk, gone = seen(pool).jobs
        assert (shrunk.activity, len(shrunk.held), shrunk.spec.workers) == (Activity.RUNNING, 2, 2)
        assert (gone.activity, gone.held) == (Activity.TERMINATING, at(last))
        assert pool.jobs.detail(SUSAN, job.id).job.preemptions == []

        runtime.end(leaving, 143, EndedBy.NOTICE)
        runtime.end(workers[0])
        runtime.end(workers[1])
        assert (await reached(pool, job.id, State.SUCCEEDED)).exit_code == 0


async def test_running_gang_gains_worker(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        (first,) = await runtime.until_launched(1)
        await reached(pool, job.id, State.RUNNING)
        free = next(f"GPU-{n}" for n in range(9) if f"GPU-{n}" not in runtime.launched[first].gpus)
        await carry_out(pool, Start(JobId(job.id), at(free)))
        assert [launch.gpus[0] for launch in runtime.launched.values()][1] == free
        runtime.end(first)
        second = list(runtime.launched)[1]
        runtime.end(second)
        done = await until_job(pool, job.id, lambda now: now.ended is not None)
        assert (done.state, done.attempt) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("by", [EndedBy.LOST, EndedBy.NOT_TAKEN])
async def test_worker_lost_before_joining_keeps_gang_result(tmp_path: Path, by: EndedBy) -> None:
    runtime = ScriptedRuntime(devices(9), start_at_once=False)
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        (first,) = await runtime.until_launched(1)
        runtime.begin(first)
        await reached(pool, job.id, State.RUNNING)
        free = next(f"GPU-{n}" for n in range(9) if f"GPU-{n}" not in runtime.launched[first].gpus)
        await carry_out(pool, Start(JobId(job.id), at(free)))
        second = list(runtime.launched)[1]
        # A restarted scheduler receives both events in this order.
        runtime.end(first)
        runtime.end(second, None, by)
        done = await until_job(pool, job.id, lambda now: now.ended is not None)
        assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
