"""Checkpoints, results, logs, records and use of ended jobs have separate retention times."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.phrases import kept_for
from benchpool_scheduler.runtime import LogChunk
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.housekeeping.retention import DAY_S
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.store.past_jobs import PastJob, PastJobs
from benchpool_support.clocks import FakeClock, LeapingClock
from benchpool_support.pools import (
    ADMIN,
    STORY,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    story,
)

KEPT = "{ended_days: 20, checkpoints_days: 2, results_days: 5, logs_days: 9, use_days: 100}"
WRITES = """
import os, pathlib
print("said")
pathlib.Path(os.environ["BENCHPOOL_CHECKPOINT_DIR"], "saved").write_text("1")
pathlib.Path(os.environ["BENCHPOOL_OUTPUT_DIR"], "model").write_text("2")
"""


def pool_that_keeps(folder: Path, clock: FakeClock, retention: str) -> Pool:
    settings = story(STORY + f"retention: {retention}\n")
    return make_pool(folder, configuration=settings, clock=clock)


async def one_that_wrote(pool: Pool) -> str:
    """Run a job that writes a checkpoint, a result and its log; return its ID."""
    job = await pool.jobs.submit(SUSAN, python_job(WRITES))
    await reached(pool, job.id, State.SUCCEEDED)
    return job.id


async def log_of(pool: Pool, job: str) -> LogChunk:
    return await pool.logs.read(SUSAN, job)


async def test_retention_removes_each_file_kind_at_its_age(tmp_path: Path) -> None:
    clock = LeapingClock()
    async with opened(pool_that_keeps(tmp_path, clock, KEPT)) as pool:
        job = await one_that_wrote(pool)
        folder, there = tmp_path / "jobs" / job, dict[float, tuple[bool, ...]]()
        passed = 0.0
        for day in (1.0, 3.0, 6.0, 10.0):
            clock.pass_s((day - passed) * DAY_S)
            passed = day
            await pool.housekeeping.removal.clean()
            there[day] = (
                (folder / "checkpoint" / "saved").exists(),
                (folder / "output" / "model").exists(),
                (await log_of(pool, job)).data == b"said\n",
            )
        assert there == {
            1.0: (True, True, True),
            3.0: (False, True, True),
            6.0: (False, False, True),
            10.0: (False, False, False),
        }
        assert (await log_of(pool, job)).ended
        detail = pool.jobs.detail(SUSAN, job)
        assert detail.attempts
        assert detail.kept is not None
        assert detail.kept.logs == detail.job.ended + timedelta(days=9)  # type: ignore[operator]
        assert kept_for(detail.kept, moment(clock.now())).endswith(
            "; checkpoints no longer, results no longer, logs no longer"
        )


async def test_job_history_outlives_job_record(tmp_path: Path) -> None:
    clock = LeapingClock()
    async with opened(pool_that_keeps(tmp_path, clock, KEPT)) as pool:
        job = await one_that_wrote(pool)
        before = await pool.history.read(ADMIN, 50)
        clock.pass_s(21 * DAY_S)
        await pool.housekeeping.removal.clean()
        with pytest.raises(NotFound):
            pool.jobs.detail(SUSAN, job)
        assert await pool.history.read(ADMIN, 50) == before
        assert before.count("\n") == 2  # the header and the job


async def test_log_retention_is_capped_by_job_retention(tmp_path: Path) -> None:
    clock = LeapingClock()
    async with opened(pool_that_keeps(tmp_path, clock, "{ended_days: 3, logs_days: 90}")) as pool:
        job = await one_that_wrote(pool)
        kept = pool.jobs.detail(SUSAN, job).kept
        assert kept is not None
        assert kept.logs == kept.job
        assert pool.views.kept() == "kept 3 days"
        clock.pass_s(4 * DAY_S)
        await pool.housekeeping.removal.clean()
        assert not (tmp_path / "jobs" / job).exists()


def test_past_jobs_are_deduplicated_and_expire_by_file(tmp_path: Path) -> None:
    past = PastJobs(tmp_path / "past-jobs")
    first = PastJob("a" * 26, 10.0, 20.0, 5.0, 2, "vision", "susan", lost_s=(61.0,))
    second = PastJob("b" * 26, 11.0, 50 * DAY_S, 5.0, 1, "speech", "joe")
    past.add([first], 30.0)
    file = next((tmp_path / "past-jobs").iterdir())
    with file.open("ab") as cut_off:
        cut_off.write(b'{"id":"ccc')
    past.add([first, first], 31.0)
    past.add([second], 50 * DAY_S + 1)
    assert list(past.read(0.0)) == [first, second]
    assert list(past.read(21.0)) == [second]
    past.expire(19.0)
    assert list(past.read(0.0)) == [first, second]
    past.expire(21.0)
    assert list(past.read(0.0)) == [second]
    past.expire(100 * DAY_S)
    assert list(past.read(0.0)) == [second]  # the newest file is the one being written
