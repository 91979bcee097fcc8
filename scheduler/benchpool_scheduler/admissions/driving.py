"""Create the jobs of a mix in a separate service and wait for their end."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchpool_scheduler.admissions.figures import Figures
from benchpool_scheduler.admissions.mixes import (
    Class,
    Mix,
    PolicyName,
    configuration,
)
from benchpool_scheduler.admissions.runtime import TimedRuntime, units
from benchpool_scheduler.admissions.virtual_clock import (
    VirtualClock,
    VirtualTimeLoop,
    WatchedStore,
)
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.service import Caller, Clock, Pool, SystemClock
from benchpool_scheduler.simulation.shapes.memory import peak_rss_mib

ClockName = Literal["real", "virtual"]

LOOK_S = 0.02
"""Poll interval for the end of all jobs, once all have been created, in seconds."""


def drive(mix: Mix, clock: ClockName, policy: PolicyName) -> Figures:
    """Run a mix from the first creation until the last job has ended in the store."""
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    if clock == "virtual":
        loop = VirtualTimeLoop
    with (
        tempfile.TemporaryDirectory(prefix="benchpool-bench-") as folder,
        asyncio.Runner(loop_factory=loop) as runner,
    ):
        return runner.run(_run(mix, clock, policy, Path(folder)))


@dataclass
class _Created:
    """Creation times of the jobs, by ID and class."""

    at: dict[str, tuple[str, float]] = field(default_factory=dict)


async def _run(mix: Mix, name: ClockName, policy: PolicyName, state: Path) -> Figures:
    virtual = name == "virtual"
    clock: Clock = VirtualClock(asyncio.get_running_loop()) if virtual else SystemClock()
    runtime = TimedRuntime(units(mix.units), clock)
    pool = Pool(
        WatchedStore(state / "scheduler"),
        runtime,
        configuration(mix, policy),
        state=state,
        directory=StaticDirectory(),
        clock=clock,
        base_url="http://pool.invalid/services/benchpool",
    )
    await pool.open()
    try:
        created, start = _Created(), clock.now()
        begun, worked = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for project in mix.projects:
                for each in mix.classes:
                    tasks.create_task(_create(pool, clock, project, each, created))
        # No event reports that the last end is on disk, so the store is polled.
        while runtime.finished < mix.jobs or _unfinished(pool):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        return Figures.of(
            mix,
            runtime,
            created.at,
            clock=name,
            policy=policy,
            wall_s=time.perf_counter() - begun,
            cpu_s=time.process_time() - worked,
            start=start,
            peak_rss_mib=peak_rss_mib(),
        )
    finally:
        await pool.close()


async def _create(pool: Pool, clock: Clock, project: str, each: Class, created: _Created) -> None:
    """Create the jobs of one set at fixed intervals, however slow the requests are."""
    caller = Caller(project)
    begun = clock.now()
    wanted = JobSubmission(
        entry=CommandEntry(["run", repr(each.run_s)]),
        name=each.name,
        project=project,
        gpus=each.units,
        priority=each.priority,
    )
    for number in range(1, each.jobs + 1):
        await asyncio.sleep(begun + number * each.interval_s - clock.now())
        at = clock.now()
        job = await pool.jobs.submit(caller, wanted)
        created.at[job.id] = (each.name, at)


def _unfinished(pool: Pool) -> bool:
    return any(pool.figures.read().jobs.values())
