"""A preempted job gets its notice once its own record is durable, before those of later jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.contract import State
from benchpool_scheduler.store.records import Change, SavePreemption
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


async def test_notice_is_sent_when_its_own_record_is_durable(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        jobs = [await pool.jobs.submit(SUSAN, sleeper()) for _ in range(6)]
        for job in jobs:
            await reached(pool, job.id, State.RUNNING)
        store, room = pool.ledger.store, asyncio.Event()
        commit, preempted = store.commit, list[str]()

        async def one_by_one(
            *changes: Change, as_written: Callable[[str], None] | None = None
        ) -> None:
            paused = [it.preemption.job for it in changes if isinstance(it, SavePreemption)]
            if paused and as_written is not None:
                preempted.extend(paused)
                as_written(paused[0])
                await room.wait()
            await commit(*changes, as_written=as_written)

        store.commit = one_by_one  # type: ignore[method-assign]
        await pool.jobs.submit(JOE, sleeper(gpus=2))
        async with asyncio.timeout(120):
            ((first, notice),) = await runtime.until_noticed(1)
            assert (first.job, notice.kind) == (preempted[0], "pause")
            # Its end is processed after the pass.
            runtime.end(first, 143)
            room.set()
            await runtime.until_noticed(2)
        store.commit = commit  # type: ignore[method-assign]
        await reached(pool, preempted[0], State.QUEUED)
        await pool.actions.finish()
        assert [worker.job for worker, _ in runtime.notices] == preempted
