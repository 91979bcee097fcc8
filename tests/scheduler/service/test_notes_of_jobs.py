"""What people write about a job stays with it, at any time, and goes only when they say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.actions import JobNote
from benchpool_scheduler.errors import NotFound
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


async def test_a_note_is_kept_over_a_restart_also_of_a_job_that_has_ended(tmp_path: Path) -> None:
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


async def test_who_may_not_see_a_job_writes_no_note_on_it(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        with pytest.raises(NotFound):
            await pool.jobs.act(JOE, job.id, "note", JobNote("mine"))
