"""Cost of a long history: starts with it, and submissions while old jobs are removed.

``python benchmarks/history.py [--jobs 100000] [--removed 5000] [--rounds 3]``: a pool with the real
store and ended jobs. *Start*: from the start of a process of the service, imports included, until
its first pass, with 20 ended jobs and with ``--jobs``, in turn. *Submission*: one after the other,
durable, in a pool with ``--jobs`` ended ones, without other events and while ``retention`` removes
``--removed`` of them.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import checkout  # noqa: F401
from crowd import PEOPLE, SUBMISSION, TEAMS, configuration, devices
from tables import Figure, show

from benchpool_scheduler.configuration.settings import Retention
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime.simulated import SimulatedRuntime
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.store.records import AddJob, JobRecord
from benchpool_scheduler.store.sqlite import SqliteStore

FEW, NODES, CHUNK = 20, 4, 5000
JOB = JobSubmission(entry=CommandEntry(argv=["sleep", "600"]))


def ended(number: int, now: float) -> JobRecord:
    """Return a job that ended within the last week."""
    at = now - 7 * 86_400 + number
    return JobRecord(
        id=f"e{number}".ljust(26, "x"),
        name=f"ended-{number}",
        project=TEAMS[number % len(TEAMS)],
        user=PEOPLE[number % len(PEOPLE)],
        state=JobState.SUCCEEDED,
        submitted=at,
        queued_since=at,
        started=at + 1,
        ended=at + 60,
        exit_code=0,
    )


async def fill(state: Path, count: int) -> None:
    """Write ``count`` ended jobs into the store."""
    store, now = SqliteStore(state / "scheduler"), time.time()
    await store.open()
    for first in range(0, count, CHUNK):
        numbers = range(first, min(count, first + CHUNK))
        await store.commit(*(AddJob(ended(number, now), SUBMISSION) for number in numbers))
    await store.close()


def make(state: Path, keep: int) -> Pool:
    """Return a pool that keeps ``keep`` ended jobs."""
    settings = dataclasses.replace(configuration(NODES), retention=Retention(ended_jobs=keep))
    runtime = SimulatedRuntime(devices(NODES))
    store = SqliteStore(state / "scheduler")
    return Pool(store, runtime, settings, state=state, directory=StaticDirectory(), base_url="/")


async def first_pass(state: Path) -> None:
    """Open a pool and wait for its first pass."""
    pool = make(state, 10**9)
    await pool.open()
    while pool.figures.read().passes < 1:
        await asyncio.sleep(0.002)
    print(f"ready {time.process_time()}", flush=True)
    await pool.close()


def start_s(state: Path) -> tuple[float, float]:
    """Return the elapsed and the processor seconds until a new process has made its first pass."""
    began = time.perf_counter()
    words = [sys.executable, str(Path(__file__).resolve()), "--open", str(state)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready, _, processor = process.stdout.readline().partition(" ")
        assert ready == "ready"
        return time.perf_counter() - began, float(processor)


async def submissions(state: Path, jobs: int, removed: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of submissions without other events, and while jobs are removed."""
    pool = make(state, jobs - removed)
    await pool.open()
    caller = Caller(PEOPLE[0])

    async def one() -> float:
        began = time.perf_counter()
        await pool.jobs.submit(caller, JOB)
        took = (time.perf_counter() - began) * 1000
        await asyncio.sleep(0.01)
        return took

    for _ in range(20):
        await one()
    quiet = [await one() for _ in range(200)]
    cleaning, busy = asyncio.create_task(pool.housekeeping.removal.clean()), []
    while not cleaning.done():
        busy.append(await one())
    await cleaning
    await pool.close()
    return quiet, busy


def spread(what: str, times: Sequence[float]) -> list[str]:
    """Return a row of a table."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    cells = " | ".join(f"{value:.1f}" for value in (cuts[49], cuts[94], cuts[98], max(times)))
    return [f"| {what} | {len(times)} | {cells} |"]


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=100_000)
    options.add_argument("--removed", type=int, default=5_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.open:
        asyncio.run(first_pass(chosen.open))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder) / "few", Path(folder) / "many"
        asyncio.run(fill(few, FEW))
        asyncio.run(fill(many, chosen.jobs))
        starts: dict[Path, list[tuple[float, float]]] = {few: [], many: []}
        for _ in range(chosen.rounds):
            for state, times in starts.items():
                times.append(start_s(state))
        rows = [
            Figure(f"start with {count:,} ended jobs, {what}", "s", tuple(it[at] for it in times))
            for count, times in ((FEW, starts[few]), (chosen.jobs, starts[many]))
            for at, what in enumerate(("by the clock", "processor"))
        ]
        show("A long history", rows)
        before = (many / "scheduler" / "pool.sqlite").stat().st_size
        quiet, busy = asyncio.run(submissions(many, chosen.jobs, chosen.removed))
        after = (many / "scheduler" / "pool.sqlite").stat().st_size
    print("\n| a submission | number | median ms | p95 ms | p99 ms | max ms |")
    print("|---|---|---|---|---|---|")
    print("\n".join(spread("nothing else happens", quiet)))
    print("\n".join(spread(f"{chosen.removed:,} old jobs are removed", busy)))
    print(f"\nThe database: {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
