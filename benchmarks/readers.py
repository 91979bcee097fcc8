"""Cost of readers of events for submitters.

``python benchmarks/readers.py [--readers 500] [--count 600] [--rounds 3]``: a small full pool of
``crowd.py`` behind the real API on the loopback, in a process of its own; each answer comes after
the fsync. 32 submissions are sent at the same time, with no reader and then with the readers, in
turn; the readers are a process of their own. *Own jobs*: five streams for each of a hundred users.
*All jobs*: all streams are administrators', so each event goes to each of them. *One alone*: the
time of a submission without other events, and until the last reader has received it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import checkout  # noqa: F401
import psutil
from crowd import ADMINISTRATORS, PEOPLE
from responsiveness import next_message, order
from tables import Figure, show

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.contract import CommandEntry, JobSubmission

AT_ONCE, NODES, ALONE = 32, 4, 5
JOB = JobSubmission(entry=CommandEntry(argv=["sleep", "600"]))
WHO = {"no reader": (), "own jobs": PEOPLE, "all jobs": ADMINISTRATORS}


class Cost(NamedTuple):
    """Service's processor time for each submission, in milliseconds."""

    user: float
    kernel: float


async def follow(url: str, tokens: Sequence[str], readers: int) -> None:
    """Read events with ``readers`` connections; print when all have received the named job."""
    place = urlsplit(url)
    known: dict[bytes, int] = {}
    wanted = b""

    def look(data: bytes) -> None:
        if wanted and b'"name":"%s"' % wanted in data:
            known[wanted] = known.get(wanted, 0) + 1
            if known[wanted] == readers:
                print(json.dumps({"known": wanted.decode()}), flush=True)

    async def one(token: str) -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        lines = [f"GET {place.path}/events HTTP/1.1", f"Host: {place.netloc}"]
        writer.write("\r\n".join([*lines, f"Authorization: token {token}", "", ""]).encode())
        await reader.readuntil(b"still here")
        tasks.append(asyncio.create_task(drain(reader)))
        writers.append(writer)

    async def drain(reader: asyncio.StreamReader) -> None:
        while data := await reader.read(1 << 16):
            look(data)

    tasks: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []
    for number in range(readers):
        await one(tokens[number % len(tokens)])
    print(json.dumps({"readers": len(tasks)}), flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        wanted = line.encode()


async def submit(url: str, count: int) -> float:
    """Submit ``count`` jobs, 32 at a time; return submissions per second."""
    work = iter(range(count))

    async def submitter(person: str) -> None:
        async with AsyncClient(Credentials(url, person)) as client:
            for _ in work:
                await client.submit(JOB)

    began = time.perf_counter()
    await asyncio.gather(*(submitter(PEOPLE[number]) for number in range(AT_ONCE)))
    return count / (time.perf_counter() - began)


async def alone(url: str, readers: subprocess.Popen[str] | None) -> list[tuple[float, float]]:
    """Submit jobs one by one; return the milliseconds of each, and until all readers know it."""
    import msgspec

    took = []
    async with AsyncClient(Credentials(url, PEOPLE[0])) as client:
        for number in range(ALONE):
            name = f"alone-{number}-{time.time_ns()}"
            if readers is not None:
                order(readers, name)
            await asyncio.sleep(1.0)
            began = time.perf_counter()
            await client.submit(msgspec.structs.replace(JOB, name=name))
            answered = time.perf_counter() - began
            if readers is not None:
                await asyncio.to_thread(next_message, readers)
            took.append((answered * 1000, (time.perf_counter() - began) * 1000))
    return took


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--readers", type=int, default=500)
    options.add_argument("--count", type=int, default=600)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--follow", nargs=2, metavar=("URL", "WHO"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.follow:
        url, who = chosen.follow
        asyncio.run(follow(url, WHO[who], chosen.readers))
        return 0
    rates: dict[str, list[float]] = {who: [] for who in WHO}
    costs: dict[str, list[Cost]] = {who: [] for who in WHO}
    single: dict[str, list[tuple[float, float]]] = {who: [] for who in WHO}
    for _ in range(chosen.rounds):
        for who, tokens in WHO.items():
            number = chosen.readers if tokens else 0
            with tempfile.TemporaryDirectory() as folder:
                rate, cost, times = _one(folder, who, number, chosen.count)
            rates[who].append(rate)
            costs[who].append(cost)
            single[who].extend(times)
    base = statistics.median(rates["no reader"])
    figures = []
    for who in WHO:
        name = who if who == "no reader" else f"{chosen.readers} readers, {who}"
        figures += [
            Figure(f"{name}: durable, 32 at once", "submissions/s", tuple(rates[who])),
            Figure(f"{name}: of the rate without", "", tuple(rate / base for rate in rates[who])),
            Figure(
                f"{name}: the service's processor time",
                "ms each",
                tuple(cost.user + cost.kernel for cost in costs[who]),
            ),
            Figure(f"{name}: in the kernel", "ms each", tuple(cost.kernel for cost in costs[who])),
            Figure(f"{name}: one alone", "ms", tuple(it for it, _ in single[who])),
        ]
        if who == "all jobs":
            every = tuple(it for _, it in single[who])
            figures.append(Figure(f"{name}: until all know of it", "ms", every))
    show("Readers of events", figures)
    return 0


def _one(
    folder: str, who: str, readers: int, count: int
) -> tuple[float, Cost, list[tuple[float, float]]]:
    here = Path(__file__).resolve()
    server = _start([str(here.parent / "crowd.py"), folder, str(NODES), "3600"])
    following = None
    try:
        url = next_message(server)["url"]
        order(server, "go")
        if readers:
            following = _start([str(here), "--readers", str(readers), "--follow", url, who])
            next_message(following)
        base = url.removesuffix("/api/v1")
        times = asyncio.run(alone(base, following if who == "all jobs" else None))
        process = psutil.Process(server.pid)
        before = process.cpu_times()
        rate = asyncio.run(submit(base, count))
        after = process.cpu_times()
        spent = ((it - was) / count * 1000 for it, was in zip(after[:2], before[:2], strict=True))
        return rate, Cost(*spent), times
    finally:
        for each in (following, server):
            if each is not None:
                each.kill()
                each.wait()


def _start(words: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    sys.exit(main())
