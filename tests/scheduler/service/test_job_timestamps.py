"""All times of a job are from one clock, whatever happens to the machine's clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.service import Clock
from benchpool_scheduler.service.process.clock import SystemClock
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened, python_job, reached

HOUR_S = 3600.0


def set_since(by_s: float) -> Clock:
    """Return a service clock whose machine clock was changed by these seconds after the start."""
    readings = iter([time.time() - by_s])
    return SystemClock(lambda: next(readings, time.time()))


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
async def test_job_times_are_consistent_after_clock_change(tmp_path: Path, by_s: float) -> None:
    clock = set_since(by_s)
    async with opened(make_pool(tmp_path, clock=clock)) as pool:
        begun = clock.now()
        job = await pool.jobs.submit(SUSAN, python_job("print('done')"))
        await reached(pool, job.id, State.SUCCEEDED)
        detail = pool.jobs.detail(ADMIN, job.id)
        (attempt,) = detail.attempts
        assert attempt.started is not None
        assert attempt.ended is not None
        times = [detail.job.submitted, attempt.started, attempt.ended]
        assert times == sorted(times)
        assert begun - 1 <= times[0].timestamp()
        assert times[-1].timestamp() <= clock.now() + 1
