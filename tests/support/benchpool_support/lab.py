"""A pool of scripted workers with a stopped clock, for tests of estimates."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.contract import Job, JobSubmission, State
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import make_pool, reached, story, until_job
from benchpool_support.scripted import ScriptedRuntime, devices

LAB = """
version: 1
build: {default: 0}
projects:
  - {name: vision, quota: 2, members: [susan]}
  - {name: speech, quota: 0, weight: 0, members: [joe]}
"""


class Lab:
    """Pool of scripted workers with a stopped clock; no sleeps."""

    def __init__(self, state: Path, gpus: int = 1) -> None:
        self.clock = FakeClock()
        self.runtime = ScriptedRuntime(devices(gpus), start_at_once=False)
        self.state = state
        self.pool = self.new()
        self._begun: set[WorkerId] = set()

    def new(self) -> Pool:
        return make_pool(
            self.state, configuration=story(LAB), runtime=self.runtime, clock=self.clock
        )

    async def start(self, caller: Caller, job: JobSubmission) -> Job:
        """Submit a job and let it run."""
        return await self.begun((await self.pool.jobs.submit(caller, job)).id)

    async def begun(self, job: str) -> Job:
        """Mark a job as running as soon as it is launched, and return it."""
        await reached(self.pool, job, State.STARTING)
        await self.runtime.until_launched(1 + len(self._begun))
        worker = next(w for w in self.runtime.alive if w.job == job)
        self._begun.add(worker)
        self.runtime.begin(worker, at=self.clock.now())
        return await reached(self.pool, job, State.RUNNING)

    async def run(self, caller: Caller, job: JobSubmission, seconds: float) -> Job:
        """Run a job to its end, which takes this number of seconds."""
        running = await self.start(caller, job)
        self.clock.pass_s(seconds)
        self.end(running)
        return await reached(self.pool, running.id, State.SUCCEEDED)

    def end(self, job: Job, exit_code: int = 0) -> None:
        """End a job's worker now."""
        worker = next(w for w in self.runtime.alive if w.job == job.id)
        self.runtime.end(worker, exit_code, at=self.clock.now())


async def estimated(pool: Pool, job: str) -> Job:
    """Return a job as soon as its start is estimated."""
    return await until_job(pool, job, lambda now: now.estimated_start is not None)
