"""Notes that users write about jobs: allowed in each state, and kept until removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.actions import JobNote
from benchpool_scheduler.errors import NotFound
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


async def test_note_of_ended_job_survives_restart(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        assert job.note == ""
        (worker,) = await runtime.until_launched(1)
        runtime.end(worker, 0)
        ended = await reached(pool, job.id, State.SUCCEEDED)
        assert "note" in ended.actions
        noted = await pool.jobs.act(SUSAN, job.id, "note", JobNote(" warm-up\n helps\u202e "))
        assert noted.note == "warm-up helps\\u202e", "signs that deceive stand as their numbers"
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        assert pool.jobs.detail(SUSAN, job.id).job.note == "warm-up helps\\u202e"
        assert (await pool.jobs.act(SUSAN, job.id, "note", JobNote())).note == ""


async def test_note_on_invisible_job_is_refused(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        with pytest.raises(NotFound):
            await pool.jobs.act(JOE, job.id, "note", JobNote("mine"))
