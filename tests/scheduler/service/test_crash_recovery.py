"""The service is killed with SIGKILL at named points, and recovers when opened again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_support import FOLDER, crashing
from benchpool_support.pools import ADMIN, opened

pytestmark = pytest.mark.slow

POINTS = [
    *(f"commit-before:{n}" for n in (1, 2, 3, 4, 5, 6, 8)),
    *(f"commit-after:{n}" for n in (1, 2, 3, 4, 5, 6, 8)),
    *("start-before", "start-after", "start-before:2", "start-after:2"),
    *("stop-before", "stop-after"),
]


async def killed_at(state: Path, point: str) -> list[str]:
    """Run the story until it is killed at the point; return the acknowledged job IDs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", crashing.__name__, str(state), point),
        env={**os.environ, "PYTHONPATH": FOLDER},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == -signal.SIGKILL, point
    return output.decode().split()


@pytest.mark.parametrize("point", POINTS)
async def test_killed_service_recovers_at_any_point(tmp_path: Path, point: str) -> None:
    accepted = await killed_at(tmp_path, point)
    async with opened(crashing.make(tmp_path)) as pool:
        known = {job.id for job in pool.jobs.select(ADMIN, all=True)}
        assert set(accepted) <= known
        big, small = await crashing.drive(pool, tmp_path / "journal")
        assert (big.state, small.state) == (State.SUCCEEDED, State.SUCCEEDED)
        assert len(pool.jobs.select(ADMIN, all=True)) == 2
        assert len(big.preemptions) == 1
        assert pool.figures.read().breaches == {}
        assert all(gpu.job is None for gpu in pool.views.status(ADMIN).gpus)
    starts = Counter((tmp_path / "journal").read_text().splitlines())
    assert set(starts.values()) == {1}, "an attempt was started twice"
    assert sum(name.startswith("small") for name in starts) == 1
