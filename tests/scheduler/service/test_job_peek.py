"""``peek``: stacks and log of a running job, for users who may see its log."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.cli import peek_view, words
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.stacks import ProcessStacks, ThreadStack, WorkerStacks
from benchpool_scheduler.errors import NotFound, Refused
from benchpool_scheduler.runtime import LogChunk, WorkerId
from benchpool_scheduler.runtime.kubernetes.agent_api import AgentApi, PendingLook
from benchpool_scheduler.telemetry import GpuSample, Sampling
from benchpool_scheduler.worker.folders import Folders
from benchpool_support.clocks import FakeClock
from benchpool_support.measured import ScriptedSampler
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


def doing(pid: int, frame: str) -> WorkerStacks:
    """Return the stacks of a worker with one process in a frame."""
    threads = [ThreadStack("MainThread", [frame])]
    return WorkerStacks([ProcessStacks(pid, f"python train.py --rank {pid}", "py-spy", threads)])


class SeenThrough(ScriptedRuntime):
    """Workers with readable stacks; the frame of the last worker differs."""

    looks = 0

    async def stacks(self, worker: WorkerId) -> WorkerStacks:
        self.looks += 1
        await asyncio.sleep(0)
        frame = "load (data.py:7)" if worker.worker == 7 else "all_reduce (ddp.py:3)"
        return doing(worker.worker, frame)

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        return LogChunk(offset, b"step 1\nstep 2\n", ended=False)

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        return 14


async def test_peek_groups_equal_workers_and_shares_concurrent_requests(tmp_path: Path) -> None:
    runtime = SeenThrough(devices(12))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(workers=8))
        await reached(pool, job.id, State.RUNNING)
        first, second = await asyncio.gather(*(pool.inside.peeks.peek(SUSAN, job.id) for _ in "ab"))
        assert first is second
        assert runtime.looks == 8
        assert [(it.who, it.processes[0].threads[0].frames) for it in first.groups] == [
            ("workers 0-6", ["all_reduce (ddp.py:3)"]),
            ("worker 7", ["load (data.py:7)"]),
        ]
        assert (first.text, first.log) == ("8 workers, 2 different stacks.", ["step 1", "step 2"])
        with pytest.raises(NotFound):
            await pool.inside.peeks.peek(JOE, job.id)


async def test_peek_text_shows_ranks_gpus_and_last_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sample(gpu: str, now: float) -> GpuSample:
        return GpuSample(now, 10.0, gpu, activity=0.25, memory_used_gib=41.0, power_w=250.0)

    runtime = SeenThrough([replace(gpu, simulated=False) for gpu in devices(12)])
    measured, clock = Sampling(ScriptedSampler(sample), 60.0), FakeClock()
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock, sampling=measured)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(workers=8))
        gpus = [gpu for it in await runtime.until_launched(8) for gpu in runtime.launched[it].gpus]
        await reached(pool, job.id, State.RUNNING)
        clock.pass_s(10.0)
        await pool.metering.look()
        answer = await pool.inside.peeks.peek(SUSAN, job.id)
    peek_view.peek(Screen(), answer)
    assert capsys.readouterr().out.splitlines() == [
        f"8 workers, 2 different stacks. Attempt 1, {words.local(answer.at)}.",
        "",
        "workers 0-6:",
        "  0 python train.py --rank 0 (py-spy)",
        "    MainThread",
        "      all_reduce (ddp.py:3)",
        "",
        "worker 7:",
        "  7 python train.py --rank 7 (py-spy)",
        "    MainThread",
        "      load (data.py:7)",
        "",
        *(f"{gpu}: busy 25 %, 41.0 GiB, 250 W" for gpu in gpus),
        "",
        "Last lines of worker 0:",
        "  step 1",
        "  step 2",
    ]


async def test_peek_at_ended_job_is_refused(tmp_path: Path) -> None:
    runtime = SeenThrough(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        worker = (await runtime.until_launched(1))[0]
        await reached(pool, job.id, State.RUNNING)
        runtime.end(worker)
        await reached(pool, job.id, State.SUCCEEDED)
        with pytest.raises(Refused, match="is succeeded: only a running job has stacks"):
            await pool.inside.peeks.peek(SUSAN, job.id)


async def test_peek_returns_stacks_from_agent(tmp_path: Path) -> None:
    worker = WorkerId("j", 1, 0)
    agents = AgentApi(Folders(tmp_path), print, ended=lambda _: False, log_bytes=1)
    asking = asyncio.create_task(agents.notice(worker, "", 30.0, looked=0))
    looking = asyncio.create_task(agents.stacks(worker))
    assert await asking == PendingLook(1)
    agents.looked(worker, doing(5, "fit (train.py:1)"))
    assert await looking == doing(5, "fit (train.py:1)")
    # The agent has answered this request; an agent of an earlier version gets none.
    assert await agents.notice(worker, "", 0.0, looked=1) is None
    assert await agents.notice(worker, "", 0.0) is None


async def test_peek_returns_when_worker_ends(tmp_path: Path) -> None:
    worker = WorkerId("j", 1, 0)
    agents = AgentApi(Folders(tmp_path), print, ended=lambda _: False, log_bytes=1)
    looking = asyncio.create_task(agents.stacks(worker))
    await asyncio.sleep(0)
    agents.leave(worker)
    assert (await looking).why == "It has ended."
