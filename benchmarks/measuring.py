"""What measuring the use of GPUs costs, and how large its record becomes.

``python benchmarks/measuring.py [--looks 200]``

*A look*: the real service's, at 8 GPUs that are held by 8 benches, through the real binding of NVML
over a scripted driver, with the processes of this program counted for each bench; processor time
of the whole process, also of the writes once a minute. *50 watchers*: each asks every five seconds
for all GPUs, as an administrator's page would; the answers are made and encoded, HTTP is left out.
*The record*: 8 GPUs that were never out of work, in a file that is as old as it becomes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
import msgspec
import pynvml
from tables import Figure, show

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import LeaseRequest
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.telemetry import Database, HeldSample, Sampling, schema
from benchpool_scheduler.telemetry.nvml import NvmlSampler
from benchpool_scheduler.telemetry.rollup import Sums
from benchpool_support.clocks import FakeClock
from benchpool_support.measured import JOB, steady
from benchpool_support.nvml import ScriptedGpu, ScriptedLibrary
from benchpool_support.pools import ADMIN, HUB, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime

GPUS, TICK_S, WATCHERS, ASK_S = 8, 10.0, 50, 5.0
DAY_S = 86_400
BENCHES = load(
    "version: 1\nbuild: {default: 1}\nprojects: [{name: p, quota: 0, members: ['*']}]",
    "benchpool.yaml",
)


class Patch:
    """What a test's ``monkeypatch`` does, for as long as this program runs."""

    def setattr(self, target: object, name: str, value: object) -> None:
        """Set an attribute."""
        setattr(target, name, value)


def driver() -> ScriptedLibrary:
    """Return a driver with everything that it may have, in the binding's place."""
    gpu = ScriptedGpu(
        "",
        used_mib=40_000,
        utilisation=[(second * 1_000_000 // 6, 50) for second in range(60)],
        percent_now=50,
        power_mw=300_000,
        energy_mj=1_000_000,
        celsius=60,
        clock_reasons=0,
        gpm=0.4,
    )
    library = ScriptedLibrary([replace(gpu, uuid=f"GPU-{number}") for number in range(GPUS)])
    library.install(Patch())
    return library


async def looks(count: int, folder: Path) -> tuple[list[float], list[float], list[int]]:
    """Return processor seconds of each minute of looks, of a round of watchers, and calls."""
    library, clock = driver(), FakeClock()
    devices = [Device(f"GPU-{i}", i, "A100", "n0", 81_920, simulated=False) for i in range(GPUS)]
    pool = make_pool(
        folder,
        runtime=ScriptedRuntime(devices),
        clock=clock,
        configuration=BENCHES,
        sampling=Sampling(NvmlSampler(), 3600.0),
    )
    minutes: list[float] = []
    rounds: list[float] = []
    calls: list[int] = []
    async with opened(pool):
        for number in range(GPUS):
            request = LeaseRequest(user=f"user-{number}", server="", spawn="s", gpus=1)
            await pool.benches.reserve(HUB, request)
        await pool.metering.look()
        for _ in range(max(count // 6, 1)):
            library.calls.clear()
            begin = time.process_time()
            for _ in range(6):
                clock.pass_s(TICK_S)
                await pool.metering.look()
            await pool.metering.settle()
            minutes.append(time.process_time() - begin)
            calls.append(sum(not name.startswith("nvmlEvent") for name in library.calls))
            begin = time.process_time()
            for _ in range(WATCHERS):
                msgspec.json.encode(pool.gpu_use.gpus(ADMIN))
            rounds.append(time.process_time() - begin)
    assert pynvml.nvmlLib is library
    return minutes, rounds, calls


def sums(step_s: int, dice: random.Random) -> Sums:
    """Return the sums of a step in which a GPU was never out of work."""
    covered, least = step_s * 1000, dice.randrange(400)
    return Sums(
        covered_ms=covered,
        active_ms=round(covered * dice.random()),
        sm_covered_ms=covered,
        sm_active_ms=round(covered * dice.random() / 2),
        energy_j=step_s * dice.randrange(60, 700),
        memory_max_mib=dice.randrange(81_920),
        temperature_max_c=dice.randrange(30, 85),
        activity_min=least,
        activity_max=least + dice.randrange(600),
    )


def holder_at(gpu: int, at: int) -> int:
    """Return the number of who held a GPU: another one every four hours."""
    return 1000 + (at // 14_400 * GPUS + gpu) % (400 * DAY_S // 14_400 * GPUS)


def rows(step_s: int, days: int, now: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of sums, with another holder every four hours."""
    for begin in range(now - days * DAY_S, now, step_s):
        for gpu in range(1, GPUS + 1):
            kept = dict(zip(schema.SUMS, astuple(sums(step_s, dice)), strict=True))
            yield {"gpu": gpu, "begin": begin, "holder": holder_at(gpu, begin), **kept}


def fill(database: Database, now: int) -> None:
    """Write a record as old as it becomes: raw by the real writer, sums into their tables."""
    import sqlalchemy as sa

    dice = random.Random(7)
    for number in range(48):
        held: list[HeldSample] = []
        for gpu in range(GPUS):
            begin = now - 2 * DAY_S + number * 3600
            holder = replace(JOB, job=f"{number // 4}-{gpu}".ljust(26, "x"))
            held += steady(f"GPU-{gpu}", begin, begin + 3600, dice.random(), holder)
        database.write(held)
    with sa.create_engine(f"sqlite:///{database.file}").begin() as connection:
        for level in schema.LEVELS:
            connection.execute(level.table.delete())
            connection.execute(
                level.table.insert(), list(rows(level.step_s, level.days, now, dice))
            )
        connection.execute(schema.held.delete())
        per_gpu = 400 * DAY_S // 14_400
        kept = dict(zip(schema.SUMS, astuple(sums(14_400, dice)), strict=True))
        holders = [
            {"id": 1000 + number, "job": f"{number}".ljust(26, "y"), "attempt": 1, "worker": 0,
             "user": f"user-{number % 40}", "project": f"project-{number % 12}"}
            for number in range(per_gpu * GPUS)
        ]  # fmt: skip
        connection.execute(schema.holders.insert(), holders)
        connection.execute(
            schema.held.insert(),
            [
                {
                    "holder": it["id"],
                    "gpu": 1 + number % GPUS,
                    "first_ms": number,
                    "last_ms": now * 1000,
                    **kept,
                }
                for number, it in enumerate(holders)
            ],
        )


def timed(count: int, work: Callable[[], object]) -> list[float]:
    """Return the milliseconds of each run."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - begin))
    return found


def record(folder: Path) -> list[Figure]:
    """Return the size of the record and the time to read from it."""
    now = 1_800_000_000
    database = Database(folder, lambda: float(now))
    database.open()
    fill(database, now)
    size = database.size()
    database.close()
    with_wal = os.path.getsize(database.file)
    week, year = now - 7 * DAY_S, now - 365 * DAY_S
    reads: Sequence[tuple[str, Callable[[], object]]] = (
        ("page of 7 days in hours, all GPUs", lambda: database.buckets(None, week, now, 168)),
        ("7 days in 10 minutes, all GPUs", lambda: database.buckets(None, week, now, 1008)),
        ("7 days by holder, all GPUs",
         lambda: database.buckets(None, week, now, 168, by_holder=True)),
        ("last hour in samples, all GPUs", lambda: database.buckets(None, now - 3600, now, 360)),
        ("a year in days, all GPUs", lambda: database.buckets(None, year, now, 365)),
    )  # fmt: skip
    figures = [Figure("record of 8 GPUs after 400 days", "MiB", (with_wal / 2**20,))]
    figures += [Figure(what, "ms", tuple(timed(7, work))) for what, work in reads]
    print(f"the file while it is filled: {size / 2**20:.1f} MiB")
    return figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=200)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        minutes, rounds, calls = asyncio.run(looks(told.looks, Path(folder)))
    assert len(set(calls)) == 1, "the calls of the driver depend on nothing but the looks"
    share = [100 * it / 60 for it in minutes]
    watched = [100 * (it / ASK_S) for it in rounds]
    with tempfile.TemporaryDirectory() as folder:
        figures = record(Path(folder))
    print(f"calls of the driver for each GPU and look: {statistics.mean(calls) / GPUS / 6:.1f}")
    show(
        "Measuring the use of GPUs",
        [
            Figure("looks and writes, of one core", "%", tuple(share)),
            Figure("answers for 50 watchers besides", "%", tuple(watched)),
            *figures,
        ],
    )


if __name__ == "__main__":
    main()
