"""Cost of measuring the use of GPUs, and the size of its record.

``python benchmarks/measuring.py [--looks 200]``

*A look*: the real service's, at 8 GPUs that are held by 8 benches, through the real binding of NVML
over the driver's library for tests (C, built with gcc), with the processes of this program counted
for each bench. It is processor time of the whole process, including the writes once a minute. *A
node's agent*: a look at 8 GPUs held by pods and the cgroups of 110 pods, and the report as bytes;
the kubelet that it queries is in the same process and counts too. *50 watchers*: each requests all
GPUs every five seconds, like an administrator's page; the answers are made and encoded, and HTTP is
left out. *The record*: 8 GPUs that were never idle, in a file of the maximum age.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, cast

import checkout  # noqa: F401
import msgspec
from tables import Figure, show

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import LeaseRequest
from benchpool_scheduler.node_agent.kubelet import KubeletSocket
from benchpool_scheduler.node_agent.looking import NodeLooks
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.telemetry import Database, HeldSample, Sampling, schema
from benchpool_scheduler.telemetry.nvml import NvmlSampler
from benchpool_scheduler.telemetry.postgresql_storage import PostgreSql
from benchpool_scheduler.telemetry.rollup import Sums
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile
from benchpool_scheduler.telemetry.storage import Storage
from benchpool_support import fake_driver
from benchpool_support.clocks import FakeClock
from benchpool_support.kubelets import ScriptedKubelet
from benchpool_support.measured import JOB, steady
from benchpool_support.nvml import ScriptedGpu, ScriptedLibrary
from benchpool_support.pools import ADMIN, HUB, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime

GPUS, TICK_S, WATCHERS, ASK_S, PODS = 8, 10.0, 50, 5.0, 110
DAY_S = 86_400
BENCHES = load(
    "version: 1\nbuild: {default: 1}\nprojects: [{name: p, quota: 0, members: ['*']}]",
    "benchpool.yaml",
)


class Patch:
    """Stand-in for a test's ``monkeypatch`` that lasts until this program ends."""

    def setattr(self, target: object, name: str, value: object) -> None:
        """Set an attribute."""
        setattr(target, name, value)


def gpus() -> list[ScriptedGpu]:
    """Return GPUs with all optional properties."""
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
    return [replace(gpu, uuid=f"GPU-{number}") for number in range(GPUS)]


def counted() -> int:
    """Return the driver calls for one GPU in one look, for any number of watchers."""
    library = ScriptedLibrary(gpus())
    library.install(Patch())
    sampler, uuids = NvmlSampler(), [it.uuid for it in library.gpus]
    sampler.sample(uuids, 0.0, {})
    library.calls.clear()
    sampler.sample(uuids, TICK_S, {})
    calls = sum(not name.startswith("nvmlEvent") for name in library.calls)
    sampler.close()
    return calls // GPUS


def installed(folder: Path) -> None:
    """Build the driver's library and use it in the binding."""
    library = fake_driver.build(folder / "driver")
    library.set_gpus(gpus())
    library.install(cast(Any, Patch()))


def agent(count: int, folder: Path) -> list[float]:
    """Return the processor time of each look of a node's agent, in seconds."""
    kubelet = ScriptedKubelet(
        free={"nvidia.com/gpu": [it.uuid for it in gpus()]},
        given={
            ("lab", f"train-{number}", "nvidia.com/gpu"): [it.uuid]
            for number, it in enumerate(gpus())
        },
    )
    groups = [folder / f"kubepods/burstable/pod{number:08x}-0000-0000-0000-000000000000"
              for number in range(PODS)]  # fmt: skip
    for group in groups:
        group.mkdir(parents=True)
        (group / "memory.current").write_text("1000000\n")
        (group / "memory.peak").write_text("2000000\n")
        (group / "io.stat").write_text("8:0 rbytes=4096 wbytes=4096 rios=1 wios=1\n" * 4)
    clock, found = FakeClock(), []
    with kubelet.serve(folder / "kubelet.sock") as socket:
        looks = NodeLooks(KubeletSocket(socket), NvmlSampler(), folder, clock.now)
        for number in range(count):
            for group in groups:
                (group / "cpu.stat").write_text(f"usage_usec {number * 1_000_000}\n")
            begin = time.process_time()
            msgspec.json.encode(looks.look(number))
            found.append(time.process_time() - begin)
            clock.pass_s(TICK_S)
        looks.close()
    return found


async def looks(count: int, folder: Path) -> tuple[list[float], list[float]]:
    """Return the processor time of each minute of looks, and of a round of watchers, in seconds."""
    clock = FakeClock()
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
    async with opened(pool):
        for number in range(GPUS):
            request = LeaseRequest(user=f"user-{number}", server="", spawn="s", gpus=1)
            await pool.benches.reserve(HUB, request)
        await pool.metering.look()
        for _ in range(max(count // 6, 1)):
            begin = time.process_time()
            for _ in range(6):
                clock.pass_s(TICK_S)
                await pool.metering.look()
            await pool.metering.settle()
            minutes.append(time.process_time() - begin)
            begin = time.process_time()
            for _ in range(WATCHERS):
                msgspec.json.encode(pool.gpu_use.gpus(ADMIN))
            rounds.append(time.process_time() - begin)
    return minutes, rounds


def sums(step_s: int, dice: random.Random) -> Sums:
    """Return the sums of a step in which a GPU was never idle."""
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
    """Return the number of a GPU's holder, which changes every four hours."""
    return 1000 + (at // 14_400 * GPUS + gpu) % (400 * DAY_S // 14_400 * GPUS)


def rows(step_s: int, days: int, now: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of sums, with another holder every four hours."""
    for begin in range(now - days * DAY_S, now, step_s):
        for gpu in range(1, GPUS + 1):
            kept = dict(zip(schema.SUMS, astuple(sums(step_s, dice)), strict=True))
            yield {"gpu": gpu, "begin": begin, "holder": holder_at(gpu, begin), **kept}


def fill(database: Database, storage: Storage, now: int) -> None:
    """Write a record of the maximum age: raw samples by the real writer, sums into their tables."""

    dice = random.Random(7)
    for number in range(48):
        held: list[HeldSample] = []
        for gpu in range(GPUS):
            begin = now - 2 * DAY_S + number * 3600
            holder = replace(JOB, job=f"{number // 4}-{gpu}".ljust(26, "x"))
            held += steady(f"GPU-{gpu}", begin, begin + 3600, dice.random(), holder)
        database.write(held)
    engine = storage.connect()
    with engine.begin() as connection:
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
    engine.dispose()


def timed(count: int, work: Callable[[], object]) -> list[float]:
    """Return the milliseconds of each run."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - begin))
    return found


def record(storage: Storage) -> list[Figure]:
    """Return the size of the record, and the times of writes and reads."""
    now = 1_800_000_000
    database = Database(storage, lambda: float(now))
    database.open()
    fill(database, storage, now)
    print(f"the record while it is filled: {database.size() / 2**20:.1f} MiB")
    database.close()  # moves the content of the write-ahead log into the file
    database.open()
    size = database.size()
    week, year = now - 7 * DAY_S, now - 365 * DAY_S
    reads: Sequence[tuple[str, Callable[[], object]]] = (
        ("page of 7 days in hours, all GPUs", lambda: database.buckets(None, week, now, 168)),
        ("7 days in 10 minutes, all GPUs", lambda: database.buckets(None, week, now, 1008)),
        ("7 days by holder, all GPUs",
         lambda: database.buckets(None, week, now, 168, by_holder=True)),
        ("last hour in samples, all GPUs", lambda: database.buckets(None, now - 3600, now, 360)),
        ("a year in days, all GPUs", lambda: database.buckets(None, year, now, 365)),
    )  # fmt: skip
    figures = [Figure("record of 8 GPUs after 400 days", "MiB", (size / 2**20,))]
    figures += [Figure(what, "ms", tuple(timed(7, work))) for what, work in reads]
    minutes = iter(range(now, now + 3600, 60))

    def write() -> None:
        begin = next(minutes)
        database.write(
            [it for gpu in range(GPUS) for it in steady(f"GPU-{gpu}", begin, begin + 60, 0.5, JOB)]
        )

    figures.append(Figure("one minute of 8 GPUs is written", "ms", tuple(timed(20, write))))
    database.close()
    return figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=200)
    parser.add_argument(
        "--database", help="a PostgreSQL's URL, for the record alone; it is emptied"
    )
    chosen = parser.parse_args()
    if chosen.database:
        show("The record of use on a server", record(PostgreSql(chosen.database)))
        return
    with tempfile.TemporaryDirectory() as folder:
        calls = counted()
        installed(Path(folder))
        minutes, rounds = asyncio.run(looks(chosen.looks, Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        on_a_node = [100 * it / TICK_S for it in agent(max(chosen.looks, 2), Path(folder))[1:]]
    share = [100 * it / 60 for it in minutes]
    watched = [100 * (it / ASK_S) for it in rounds]
    with tempfile.TemporaryDirectory() as folder:
        figures = record(SqliteFile(Path(folder)))
    print(f"calls of the driver for each GPU and look: {calls}")
    show(
        "Measuring the use of GPUs",
        [
            Figure("looks and writes, of one core", "%", tuple(share)),
            Figure("answers for 50 watchers besides", "%", tuple(watched)),
            Figure("a node's agent, of one core", "%", tuple(on_a_node)),
            *figures,
        ],
    )


if __name__ == "__main__":
    main()
