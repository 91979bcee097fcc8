"""Users rename accepted jobs in any state, permanently."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.actions import JobRename
from benchpool_scheduler.errors import NotFound
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices


async def test_job_rename_survives_restart(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        ended, running = [
            await pool.jobs.submit(SUSAN, sleeper(name=name)) for name in ("first", "second")
        ]
        workers = {one.job: one for one in await runtime.until_launched(2)}
        runtime.end(workers[ended.id], 0)
        await reached(pool, ended.id, State.SUCCEEDED)
        await reached(pool, running.id, State.RUNNING)
        for job, name in ((ended, "baseline"), (running, "ablation")):
            renamed = await pool.jobs.act(SUSAN, job.id, "rename", JobRename(name))
            assert renamed.name == name
            assert "rename" in renamed.actions
        again = await pool.jobs.act(SUSAN, running.id, "rename", JobRename("ablation"))
        assert (again.name, again.state) == ("ablation", State.RUNNING)
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        found = {job.id: job.name for job in pool.jobs.select(SUSAN)}
        assert found == {ended.id: "baseline", running.id: "ablation"}


async def test_rename_requires_right_to_change(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(name="old"))
        with pytest.raises(NotFound):
            await pool.jobs.act(JOE, job.id, "rename", JobRename("joes"))
        assert (await pool.jobs.act(ADMIN, job.id, "rename", JobRename("new"))).name == "new"


async def test_submission_shows_new_job_name(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        named = await pool.jobs.submit(SUSAN, sleeper(name="old"))
        unnamed = await pool.jobs.submit(SUSAN, sleeper(name=None))
        await pool.jobs.act(SUSAN, named.id, "rename", JobRename("new"))
        assert pool.jobs.submission(SUSAN, named.id).name == "new"
        assert pool.jobs.submission(SUSAN, unnamed.id).name is None
