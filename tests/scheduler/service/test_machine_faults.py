"""Machine faults: the queue survives them and its jobs run afterwards, without a restart."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.core.lifecycle import draining
from benchpool_scheduler.core.lifecycle.draining import Intake, Sign
from benchpool_scheduler.runtime import EndedBy, Launch, StartFault
from benchpool_scheduler.runtime.simulated import SimulatedRuntime, simulated_devices
from benchpool_scheduler.service import Pool
from benchpool_support.exhausted import needs_root, no_descriptor_left, small_disk
from benchpool_support.pools import (
    ADMIN,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    story,
    until_job,
)
from benchpool_support.waiting import until_async

POOL = story(
    """
version: 1
projects: [{name: susan, quota: 2, members: [susan]}]
policy: {grace_s: 3}
"""
)


def problems(pool: Pool) -> str:
    """Return the problems that the pool's health shows to administrators."""
    return " ".join(pool.views.status(ADMIN).health.problems)


async def until_problem(pool: Pool, words: str) -> str:
    """Wait until the problems contain these words; return all problems."""
    await until_async(lambda: words in problems(pool))
    return problems(pool)


async def well_again(pool: Pool) -> None:
    """Wait until the pool's health shows no problem."""
    await until_async(lambda: not problems(pool))


async def submitted(pool: Pool, count: int) -> list[Job]:
    """Submit jobs that print and end."""
    return [
        await pool.jobs.submit(SUSAN, python_job("print('done')", name=f"job-{number}"))
        for number in range(count)
    ]


async def all_succeed(pool: Pool, jobs: list[Job]) -> None:
    """Wait until all jobs have succeeded; fail if a job ends otherwise."""
    for job in jobs:
        ended = await reached(pool, job.id, State.SUCCEEDED, State.FAILED, State.PAUSED)
        assert ended.state is State.SUCCEEDED, ended


# --------------------------------------------------------------------------- real faults


@needs_root
async def test_queue_survives_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "jobs", size="8m") as disk:
        async with opened(make_pool(tmp_path, configuration=POOL, gpus=2)) as pool:
            disk.fill()
            jobs = await submitted(pool, 6)
            shown = await until_problem(pool, "No job starts on ")
            assert "No space left on device" in shown
            assert f"Free space on the disk of the state folder ({tmp_path})" in shown
            await asyncio.sleep(1.5)  # a trial fails meanwhile or is about to fail
            for job in jobs:
                await reached(pool, job.id, State.QUEUED)
            assert max(pool.jobs.detail(ADMIN, job.id).job.attempt for job in jobs) <= 3
            disk.make_room()
            await all_succeed(pool, jobs)
            await well_again(pool)


async def test_queue_survives_lack_of_descriptors(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, configuration=POOL, gpus=2)) as pool:
        with no_descriptor_left():
            jobs = await submitted(pool, 6)
            shown = await until_problem(pool, "No job starts on ")
            assert "Too many open files" in shown
            assert "prlimit" in shown
        await all_succeed(pool, jobs)
        await well_again(pool)


@pytest.mark.slow
def failed_or_ended(pool: Pool, job: str) -> bool:
    return bool(problems(pool)) or pool.jobs.detail(ADMIN, job).job.ended is not None


@needs_root
async def test_job_runs_after_disk_fills_at_any_point_of_start(tmp_path: Path) -> None:
    with small_disk(tmp_path / "jobs", size="8m", inodes=2000) as disk:
        async with opened(make_pool(tmp_path, configuration=POOL, gpus=2)) as pool:
            for inodes in range(1, 16):
                disk.fill()
                disk.leave(inodes)
                (job,) = await submitted(pool, 1)
                await until_async(partial(failed_or_ended, pool, job.id))
                disk.make_room()
                await all_succeed(pool, [job])
            await well_again(pool)


# --------------------------------------------------------------------------- the table, the pauses


def test_fault_blocks_starts_until_trial_succeeds() -> None:
    for signs in itertools.product(Sign, repeat=5):
        intake, tried = Intake.OPEN, True
        for sign in signs:
            before, intake = intake, draining.after(intake, sign)
            if sign is Sign.FAULT and draining.takes(before):
                tried = False
            if before is Intake.TRYING and sign is Sign.WORKED:
                tried = True
            assert draining.takes(intake) is tried


class Faulty(SimulatedRuntime):
    """Runtime whose next starts of jobs and trials fail, by two counters."""

    def __init__(self, starts: int, trials: int) -> None:
        super().__init__(simulated_devices(2))
        self.starts, self.trials = starts, trials
        self.made: list[str] = []

    async def run_worker(self, launch: Launch) -> None:
        """Report a machine fault, or begin and succeed."""
        self.made.append("start")
        if self.starts:
            self.starts -= 1
            self.end(launch.worker, None, EndedBy.MACHINE_FAULT, text="its disk is full")
            return
        self.begin(launch.worker)
        self.end(launch.worker, 0)

    async def try_start(self, node: str) -> StartFault | None:
        """Return a fault, or None."""
        self.made.append("trial")
        if self.trials:
            self.trials -= 1
            return StartFault(28, "its disk is full")
        return None


async def test_trials_run_singly_with_growing_pauses(tmp_path: Path) -> None:
    runtime = Faulty(starts=1, trials=8)
    async with opened(make_pool(tmp_path, configuration=POOL, runtime=runtime)) as pool:
        pauses: list[float] = []

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            await asyncio.sleep(0)

        pool.drain.sleep = sleep
        jobs = await submitted(pool, 1)
        await all_succeed(pool, jobs)
        await well_again(pool)
        assert runtime.made == ["start", *["trial"] * 9, "start"]
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_fault_after_successful_trial_keeps_growing_pauses(tmp_path: Path) -> None:
    runtime = Faulty(starts=4, trials=0)
    async with opened(make_pool(tmp_path, configuration=POOL, runtime=runtime)) as pool:
        pauses: list[float] = []

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            await asyncio.sleep(0)

        pool.drain.sleep = sleep
        await all_succeed(pool, await submitted(pool, 1))
        assert pauses == [1, 2, 4, 8]


async def test_machine_fault_uses_no_retry_and_sets_reason(tmp_path: Path) -> None:
    runtime = Faulty(starts=1, trials=1_000_000)
    async with opened(make_pool(tmp_path, configuration=POOL, runtime=runtime)) as pool:
        (job,) = await submitted(pool, 1)
        await until_problem(pool, "No job starts on localhost: its disk is full.")
        await until_job(pool, job.id, lambda it: it.state is State.QUEUED)
        detail = pool.jobs.detail(ADMIN, job.id)
        assert [attempt.ended_by for attempt in detail.attempts] == ["machine-fault"]
        assert detail.job.state is State.QUEUED
        assert pool.figures.read().drained == 1
        waits = await until_job(pool, job.id, _waits_for_a_node)
        assert "1 node of the pool is not ready" in str(waits.reason)


def _waits_for_a_node(job: Job) -> bool:
    return job.reason is not None and job.reason.code == "no-node-ready"
