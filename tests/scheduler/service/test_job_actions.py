"""The actions listed with a job match what the pool accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.actions import ActionReason
from benchpool_scheduler.contract.changes import JobChange
from benchpool_scheduler.errors import Refused
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper

pytestmark = pytest.mark.slow  # five seconds lie between the notice and SIGTERM


async def test_actions_follow_job_state(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        running = await reached(pool, job.id, State.RUNNING)
        assert running.actions == ["pause", "cancel", "change", "rename", "note"]
        await pool.jobs.act(SUSAN, job.id, "pause", ActionReason())
        paused = await reached(pool, job.id, State.PAUSED)
        assert paused.actions == ["resume", "cancel", "change", "rename", "note"]
        await pool.jobs.act(SUSAN, job.id, "cancel", ActionReason())
        ended = await reached(pool, job.id, State.CANCELLED)
        assert ended.actions == ["rename", "note"]


async def test_fixed_fields_match_refused_changes(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        rigid = await pool.jobs.submit(SUSAN, sleeper(workers=2))
        elastic = await pool.jobs.submit(SUSAN, sleeper(workers=2, min_workers=2))
        for job in (rigid, elastic):
            await reached(pool, job.id, State.RUNNING)
        held = ["gpus", "time_limit_s", "project", "gpu_models"]
        assert pool.jobs.detail(SUSAN, rigid.id).fixed == ["workers", *held]
        with pytest.raises(Refused):
            await pool.jobs.act(SUSAN, rigid.id, "change", JobChange(workers=1))
        assert pool.jobs.detail(SUSAN, elastic.id).fixed == held
        await pool.jobs.act(SUSAN, elastic.id, "change", JobChange(workers=3))
        await pool.jobs.act(SUSAN, rigid.id, "pause", ActionReason())
        await reached(pool, rigid.id, State.PAUSED)
        assert pool.jobs.detail(SUSAN, rigid.id).fixed == []
