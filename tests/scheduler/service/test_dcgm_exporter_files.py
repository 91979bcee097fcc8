"""Job files for dcgm-exporter name the job of each GPU as recorded in the ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.service.housekeeping.hpc_job_files import write
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper, story
from benchpool_support.waiting import until

POOL = "{version: 1, projects: [{name: susan, quota: 2, members: [susan]}]}"


def gpu_files(folder: Path) -> dict[str, str]:
    """Return the content of each file that dcgm-exporter reads, by file name."""
    return {file.name: file.read_text() for file in folder.glob("[0-9]*")}


def test_free_gpu_files_are_removed_and_unchanged_files_kept(tmp_path: Path) -> None:
    folder = tmp_path / "hpc-jobs"
    write(folder, {0: "7k2m", 3: "9xyz"})
    before = (folder / "0").stat().st_ino
    write(folder, {0: "7k2m", 1: "aaaa"})
    assert gpu_files(folder) == {"0": "7k2m\n", "1": "aaaa\n"}
    assert (folder / "0").stat().st_ino == before
    write(folder, {})
    assert list(folder.iterdir()) == []


@pytest.mark.slow
async def test_gpu_files_name_running_job_until_end(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, configuration=story(POOL), gpus=3)) as pool:
        folder = pool.observed.settings.state / "scheduler" / "hpc-jobs"
        job = await pool.jobs.submit(SUSAN, sleeper(name="two", gpus=2))
        await reached(pool, job.id, State.RUNNING)
        indexes = [gpu.index for gpu in pool.views.status(SUSAN).gpus if gpu.job == job.id]
        wanted = {str(index): f"{job.id}\n" for index in indexes}
        await asyncio.to_thread(
            until, lambda: gpu_files(folder) == wanted, "the files name the job"
        )
        await pool.jobs.act(SUSAN, job.id, "cancel")
        await asyncio.to_thread(until, lambda: gpu_files(folder) == {}, "the files are gone")
