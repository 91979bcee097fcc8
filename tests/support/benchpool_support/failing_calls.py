"""A pool in whose processes single system calls fail: ``python -m ... STATE MOST``.

Points come as lines ``who call number`` on standard input. For each point there are at most
``MOST`` rounds. In the first round, the first call fails while a job runs and another is cancelled.
In the second round, the second call fails, and so on until the processes make fewer calls. One line
of JSON reports the result of each round. The pool is never reopened, so a state that does not
converge by itself stays wrong.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service import Pool
from benchpool_support.pools import ADMIN, SUSAN, make_pool, python_job, reached, sleeper, story
from benchpool_support.waiting import PATIENCE_S, until_async

SOURCE = Path(__file__).with_suffix(".c")

POOL = story(
    """
version: 1
projects: [{name: susan, quota: 2, members: [susan]}]
policy: {grace_s: 3}
"""
)

PROGRAM = """
import os
with open(os.environ["JOURNAL"], "a") as file:
    file.write(os.environ["BENCHPOOL_JOB_NAME"] + " " + os.environ["BENCHPOOL_ATTEMPT"] + "\\n")
"""


T = TypeVar("T")


def compiled(folder: Path, source: Path = SOURCE) -> Path | None:
    """Compile the source to a library for LD_PRELOAD; return None if there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    library = folder / f"{source.stem}.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def environment(state: Path, library: Path) -> dict[str, str]:
    """Return the environment of a process in which calls may fail."""
    return {
        "LD_PRELOAD": str(library),
        "FAULT_FILE": str(state.parent / "fault"),
        "FAULT_BELOW": str(state),
        "FAULT_WHO": "scheduler",
    }


def let_supervisors_fail(own: dict[str, str]) -> None:
    """Preload the library in supervisors too, which start with an empty environment."""
    spawn: Callable[..., int] = os.posix_spawn

    def with_library(path: str, argv: list[str], env: object, **more: Any) -> int:
        return spawn(path, argv, {**own, "FAULT_WHO": "supervisor"}, **more)

    os.posix_spawn = with_library  # type: ignore[assignment]


class Fault:
    """The armed fault."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._done = file.with_name(f"{file.name}.done")
        self._number = 0

    def arm(self, who: str, call: str, number: int, skip: int) -> None:
        """Let the call after ``skip`` other calls fail."""
        self._number += 1
        self._done.unlink(missing_ok=True)
        self._file.with_name("next").write_text(f"{who} {call} {number} {skip} {self._number}")
        self._file.with_name("next").rename(self._file)

    def disarm(self) -> bool:
        """Disarm the fault and return whether a call has failed."""
        self._file.unlink(missing_ok=True)
        return self._done.exists()


async def patiently(what: Callable[[], Awaitable[T]]) -> T:
    """Repeat an action as a client does that is asked to retry."""
    while True:
        try:
            return await what()
        except (Unavailable, OSError):
            await asyncio.sleep(0.1)


async def run_and_cancel(pool: Pool, journal: Path, name: str) -> None:
    """Let a job run, and cancel another job."""
    short = python_job(PROGRAM, name=f"short-{name}", key=f"s{name}", env={"JOURNAL": str(journal)})
    job = await patiently(lambda: pool.jobs.submit(SUSAN, short))
    await reached(pool, job.id, State.SUCCEEDED, State.FAILED, State.PAUSED)
    long = await patiently(
        lambda: pool.jobs.submit(SUSAN, sleeper(name=f"long-{name}", key=f"l{name}"))
    )
    await reached(pool, long.id, State.RUNNING, State.FAILED, State.PAUSED)
    await patiently(lambda: pool.jobs.act(SUSAN, long.id, "cancel"))
    await reached(pool, long.id, State.CANCELLED, State.FAILED)


async def settled(pool: Pool) -> None:
    """Wait until no GPU is held and nothing is wrong."""
    await until_async(
        lambda: pool.views.status(ADMIN),
        "nothing is held and nothing is wrong",
        holds=lambda now: not now.health.problems and all(gpu.job is None for gpu in now.gpus),
    )


async def round_of(pool: Pool, journal: Path, name: str) -> str | None:
    """Return the part that did not converge, or None."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await run_and_cancel(pool, journal, name)
            await settled(pool)
    except TimeoutError:
        jobs = {job.name: job.state for job in pool.jobs.select(ADMIN)}
        return f"not settled: {jobs}, {pool.views.status(ADMIN).health.problems}"
    states = {
        job.name: job.state
        for job in pool.jobs.select(ADMIN, all=True)
        if job.name.endswith(f"-{name}")
    }
    expected = {f"short-{name}": State.SUCCEEDED, f"long-{name}": State.CANCELLED}
    if states != expected:
        return f"ended as {states}"
    starts = Counter(journal.read_text().splitlines())
    twice = [start for start, times in starts.items() if times > 1]
    if twice or pool.figures.read().breaches:
        return f"started twice: {twice}; breaches: {pool.figures.read().breaches}"
    return None


async def main(state: Path, most: int) -> None:
    """Run the rounds of each point of standard input."""
    pool = make_pool(state, configuration=POOL, gpus=2)
    fault, journal = Fault(Path(os.environ["FAULT_FILE"])), state.parent / "journal"
    journal.touch()
    await pool.open()
    pool.drain.sleep = lambda seconds: asyncio.sleep(seconds / 10)
    for line in sys.stdin:
        who, call, number = line.split()
        for skip in range(most):
            begun = time.monotonic()
            fault.arm(who, call, int(number), skip)
            wrong = await round_of(pool, journal, f"{who}-{call}-{number}-{skip}".lower())
            failed = fault.disarm()
            point = {"point": f"{who} {call} {errno.errorcode[int(number)]}", "nth": skip + 1}
            took = round(time.monotonic() - begun, 2)
            print(json.dumps({**point, "failed": failed, "wrong": wrong, "s": took}), flush=True)
            if not failed or wrong:
                break
    await pool.close()


if __name__ == "__main__":
    own = {name: os.environ[name] for name in ("LD_PRELOAD", "FAULT_FILE", "FAULT_BELOW")}
    let_supervisors_fail(own)
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
