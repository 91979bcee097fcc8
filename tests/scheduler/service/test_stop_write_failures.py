"""An acknowledged stop is carried out even if its file cannot be written."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.runtime import Launch, Notice, WorkerId
from benchpool_scheduler.runtime.simulated import SimulatedRuntime, simulated_devices
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.exhausted import needs_root, no_descriptor_left, small_disk
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
    until_job,
)
from benchpool_support.waiting import until_async

TWO = story(
    """
version: 1
projects:
  - {name: susan, quota: 1, members: [susan]}
  - {name: joe, quota: 1, members: [joe]}
policy: {grace_s: 3, preemptions_per_hour: 100, preemptions_per_day: 2400}
"""
)
"""Two GPUs, one for each of two users."""


def problems(pool: Pool) -> str:
    """Return the problems that the pool's health shows to administrators."""
    return " ".join(pool.views.status(ADMIN).health.problems)


async def running(pool: Pool, **more: object) -> Job:
    """Return a running job of susan, which runs until it is stopped."""
    job = await pool.jobs.submit(SUSAN, sleeper(**more))
    return await reached(pool, job.id, State.RUNNING)


async def well_again(pool: Pool) -> None:
    """Wait until the pool's health shows no problem."""
    await until_async(lambda: not problems(pool))


@needs_root
async def test_cancel_on_full_disk_ends_job(tmp_path: Path) -> None:
    with small_disk(tmp_path / "jobs") as disk:
        async with opened(make_pool(tmp_path, configuration=TWO, gpus=2)) as pool:
            job = await running(pool)
            disk.fill()
            await pool.jobs.act(SUSAN, job.id, "cancel")
            await until_job(pool, job.id, lambda it: bool(problems(pool)) or it.ended is not None)
            assert "The stop requests of 1 worker cannot be written (No space left" in problems(
                pool
            )
            ended = await reached(pool, job.id, State.CANCELLED)
            assert ended.reason is not None
            assert "Cancelled by susan" in ended.reason.text
            # The end of the job was written, although the disk is full.
            assert [*tmp_path.glob("jobs/*/attempts/1/worker-0/exit.json")]
            await well_again(pool)
            disk.make_room()


async def test_preemption_works_without_victim_folder(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path, configuration=TWO, gpus=2)) as pool:
        victim = await running(pool, gpus=2)
        shutil.rmtree(tmp_path / "jobs" / victim.id / "attempts")
        claimant = await pool.jobs.submit(JOE, sleeper())
        await reached(pool, claimant.id, State.RUNNING)
        assert (await reached(pool, victim.id, State.QUEUED)).preemptions


async def test_pause_works_without_free_descriptors(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, configuration=TWO, gpus=2)) as pool:
        job = await running(pool)
        with no_descriptor_left():
            await pool.jobs.act(SUSAN, job.id, "pause")
            await until_job(
                pool, job.id, lambda it: bool(problems(pool)) or it.state is State.PAUSED
            )
            assert "Too many open files" in problems(pool)
        await reached(pool, job.id, State.PAUSED)
        await well_again(pool)


# --------------------------------------------------------------------------- injected faults


class Deaf(SimulatedRuntime):
    """Runtime whose first ``faults`` stops of workers fail."""

    def __init__(self, faults: int) -> None:
        super().__init__(simulated_devices(2))
        self.faults = faults
        self.received: list[Notice] = []

    async def run_worker(self, launch: Launch) -> None:
        """Begin at once."""
        self.begin(launch.worker)

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Fail, or record the notice."""
        if self.faults:
            self.faults -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.received.append(notice)


@contextmanager
def pauses(pool: Pool) -> Iterator[list[float]]:
    """Skip the pauses between retries, and yield the list of their lengths in seconds."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)
        await asyncio.sleep(0)

    pool.actions.stops.sleep = sleep
    yield found


async def test_failed_stop_is_retried_with_growing_pauses(tmp_path: Path) -> None:
    runtime = Deaf(faults=10)
    async with opened(make_pool(tmp_path, configuration=TWO, runtime=runtime)) as pool:
        job = await running(pool)
        with pauses(pool) as found:
            await pool.jobs.act(SUSAN, job.id, "cancel")
            await well_again(pool)
        assert [notice.kind for notice in runtime.received] == ["cancel"]
        assert found == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


async def test_stop_retries_end_with_worker(tmp_path: Path) -> None:
    runtime = Deaf(faults=1_000_000)
    async with opened(make_pool(tmp_path, configuration=TWO, runtime=runtime)) as pool:
        job = await running(pool)
        with pauses(pool):
            await pool.jobs.act(SUSAN, job.id, "cancel")
            await until_job(pool, job.id, lambda _: bool(problems(pool)))
            runtime.end(WorkerId(job.id, 1, 0), 143)
            await reached(pool, job.id, State.CANCELLED)
            await well_again(pool)


async def test_repeated_cancel_is_sent_again(tmp_path: Path) -> None:
    runtime = Deaf(faults=0)
    async with opened(make_pool(tmp_path, configuration=TWO, runtime=runtime)) as pool:
        job = await running(pool)
        for times in (1, 2, 3):
            await pool.jobs.act(SUSAN, job.id, "cancel")
            await until_async(lambda: len(runtime.received), holds=times.__le__)
        assert {(notice.kind, notice.text) for notice in runtime.received} == {
            ("cancel", "Cancelled by susan.")
        }


async def test_stop_is_resent_after_grace_period(tmp_path: Path) -> None:
    clock, runtime = FakeClock(), Deaf(faults=0)
    async with opened(make_pool(tmp_path, configuration=TWO, runtime=runtime, clock=clock)) as pool:
        job = await running(pool)
        await pool.jobs.act(SUSAN, job.id, "pause")
        stops = pool.actions.stops
        resent: list[float] = []
        for _ in range(200):
            await stops.repeat()
            if len(runtime.received) > 1 + len(resent):
                resent.append(clock.now())
            clock.pass_s(1.0)
        gaps = [round(after - before) for before, after in itertools.pairwise(resent)]
        assert gaps == [10, 20, 40, 60, 60]
        assert runtime.received[-1].kind == "pause"
