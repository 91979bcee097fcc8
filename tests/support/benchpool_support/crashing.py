"""A service that is killed at a named point, in its own process: ``python -m ... STATE POINT``.

It plays a small scenario: a job of susan runs over quota, a job of joe reclaims from it, and in the
end both succeed. The driver is idempotent, so that the same call continues after a crash. Points:
``commit-before:N`` and ``commit-after:N`` for the Nth commit, ``start-before``, ``start-after``,
``stop-before``, ``stop-after`` for the first such call of the runtime.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime import Launch, Notice, WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.service import Pool, allowed_environment
from benchpool_scheduler.store.records import Change
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.pools import JOE, SUSAN, python_job, reached, story, until_job

CONFIGURATION = story(
    """
version: 1
projects:
  - {name: susan, quota: 1, members: [susan]}
  - {name: joe, quota: 1, members: [joe]}
policy: {grace_s: 20, preemptions_per_hour: 100, preemptions_per_day: 2400}
"""
)

TRAIN = """
import os, pathlib, sys, time
log = pathlib.Path(os.environ["JOURNAL"])
saved = pathlib.Path(os.environ["BENCHPOOL_CHECKPOINT_DIR"]) / "saved"
notice = pathlib.Path(os.environ["BENCHPOOL_NOTICE_FILE"])
with log.open("a") as file:
    file.write(f"{os.environ['BENCHPOOL_JOB_NAME']} {os.environ['BENCHPOOL_ATTEMPT']}\\n")
if saved.exists():
    sys.exit(0)
while not notice.exists():
    time.sleep(0.02)
saved.touch()
sys.exit(3)
"""

SHORT = TRAIN.split("if saved")[0] + "time.sleep(0.3)\n"


def make(state: Path) -> Pool:
    """Return the pool of the scenario."""
    return _pool(SqliteStore(state / "scheduler"), LocalRuntime(state, simulated(2)), state)


def _pool(store: SqliteStore, runtime: LocalRuntime, state: Path) -> Pool:
    return Pool(
        store,
        runtime,
        CONFIGURATION,
        state=state,
        directory=StaticDirectory(),
        environment=allowed_environment(os.environ),
    )


async def drive(pool: Pool, journal: Path) -> tuple[Job, Job]:
    """Continue the scenario to its end from its current state; print the ID of each new job."""
    env = {"JOURNAL": str(journal)}
    big = await pool.jobs.submit(SUSAN, python_job(TRAIN, gpus=2, name="big", key="big", env=env))
    print(big.id, flush=True)
    await until_job(pool, big.id, lambda it: it.state is State.RUNNING or bool(it.preemptions))
    small = await pool.jobs.submit(JOE, python_job(SHORT, name="small", key="small", env=env))
    print(small.id, flush=True)
    return (
        await reached(pool, big.id, State.SUCCEEDED, State.FAILED),
        await reached(pool, small.id, State.SUCCEEDED, State.FAILED),
    )


# --------------------------------------------------------------------------- crashes


class Fuse:
    """Trigger that kills the process when a point is reached."""

    def __init__(self, point: str) -> None:
        name, _, number = point.partition(":")
        self._point, self._left = name, int(number or 1)

    def reach(self, point: str) -> None:
        """Kill the process if this is the point."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DyingStore(SqliteStore):
    """Real store with a trigger before and after each commit."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._fuse = fuse

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Commit, unless the process dies before or after it."""
        self._fuse.reach("commit-before")
        await super().commit(*changes, as_written=as_written)
        self._fuse.reach("commit-after")


class DyingRuntime(LocalRuntime):
    """Real runtime with a trigger before and after each start and stop."""

    def __init__(self, state: Path, fuse: Fuse) -> None:
        super().__init__(state, simulated(2))
        self._fuse = fuse

    async def start(self, launch: Launch) -> None:
        """Start, unless the process dies before or after it."""
        self._fuse.reach("start-before")
        await super().start(launch)
        self._fuse.reach("start-after")

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Stop, unless the process dies before or after it."""
        self._fuse.reach("stop-before")
        await super().stop(worker, notice)
        self._fuse.reach("stop-after")


async def main(state: Path, point: str) -> None:
    """Run the scenario until the trigger kills the process."""
    fuse = Fuse(point)
    pool = _pool(DyingStore(state / "scheduler", fuse), DyingRuntime(state, fuse), state)
    await pool.open()
    await drive(pool, state / "journal")
    await pool.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
