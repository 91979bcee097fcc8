"""Time until the page Fleet is visible, with 64 GPUs that have worked for 400 days.

``python benchmarks/fleet.py [TRACE] [--days 400] [--runs 7]``

The jobs of a trace (by default the week of ``docs/cases``, over and over) run on 8 nodes of 8 GPUs
until now. Measurements are kept as the service keeps them: minutes for 30 days, hours for all.
*Server*: from the request to the last byte, over HTTP on this machine. *First paint*: Chromium's
first contentful paint from the start of the navigation, with an empty browser cache. The service
caches some figures for seconds; before each run enough time passes that it computes them again. It
divides the completed hours at the first request only, which is reported separately.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import checkout
from tables import Figure, show
from tornado.httpclient import AsyncHTTPClient

from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.simulation.replay.trace import read
from benchpool_scheduler.telemetry import database
from benchpool_support.browser import chromium
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, HUB, make_pool, opened, reached, sleeper, story
from benchpool_support.scripted import STARTED, ScriptedRuntime, machine
from benchpool_support.stage import application, served
from benchpool_support.traced_use import DAY_S, TEAMS, fill, worked_through

WEEK = checkout.TESTS.parent / "docs/cases/workload/week.csv"
NODES = tuple(machine(f"gpu-{number:02}", gpus=8) for number in range(8))
FORGOTTEN_S = 61.0
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
PEOPLE = [user for team in TEAMS.values() for user in team]
TEXT = "version: 1\nbuild: {default: 1}\nprojects:\n" + "".join(
    f"  - {{name: {team}, quota: 12, members: [{', '.join(users)}]}}\n"
    for team, users in TEAMS.items()
)


@asynccontextmanager
async def pool_of(state: Path, trace: Path, days: int, clock: FakeClock) -> AsyncIterator[Pool]:
    """Yield a pool whose GPUs worked through a trace and work now."""
    (state / "scheduler").mkdir()
    spans = worked_through(read(trace), NODES, STARTED - days * DAY_S, STARTED)
    began = time.perf_counter()
    file = state / "scheduler" / database.FILE
    fill(file, spans, minutes_since=STARTED - min(days, 30) * DAY_S)
    print(f"filled in {time.perf_counter() - began:.0f} s: {file.stat().st_size / 2**20:.0f} MiB")
    runtime = ScriptedRuntime(tuple(gpu for node in NODES for gpu in node))
    made = make_pool(state, configuration=story(TEXT), runtime=runtime, clock=clock)
    async with opened(made) as pool:
        for user in PEOPLE:
            await pool.benches.reserve(HUB, LeaseRequest(user, "", "1", 1))
            job = await pool.jobs.submit(Caller(user), sleeper(gpus=4))
            await reached(pool, job.id, State.RUNNING)
        yield pool


async def answers(address: str, clock: FakeClock, runs: int) -> list[Figure]:
    """Return the times and sizes of the page."""
    client, seconds, sizes = AsyncHTTPClient(), [], []
    for _ in range(runs + 1):
        clock.pass_s(FORGOTTEN_S)
        began = time.perf_counter()
        answer = await client.fetch(
            f"{address}fleet", headers={"Cookie": "reader=ada"}, request_timeout=120
        )
        seconds.append((time.perf_counter() - began) * 1000)
        sizes.append(answer.body)
    kept = []
    for _ in range(runs):
        began = time.perf_counter()
        await client.fetch(f"{address}fleet", headers={"Cookie": "reader=ada"})
        kept.append((time.perf_counter() - began) * 1000)
    return [
        Figure("server, first request after its start", "ms", tuple(seconds[:1])),
        Figure("server, after a minute", "ms", tuple(seconds[1:])),
        Figure("server, within 15 s", "ms", tuple(kept)),
        Figure("page", "kB", tuple(len(one) / 1000 for one in sizes)),
        Figure("page, compressed", "kB", tuple(len(gzip.compress(one)) / 1000 for one in sizes)),
    ]


async def paints(address: str, clock: FakeClock, runs: int) -> Figure:
    """Return the time of the first contentful paint."""
    found = []
    async with chromium() as browser:
        for _ in range(runs):
            clock.pass_s(FORGOTTEN_S)
            context = await browser.new_context(viewport={"width": 1440, "height": 900})
            await context.add_cookies([{"name": "reader", "value": "ada", "url": address}])
            page = await context.new_page()
            await page.goto(f"{address}fleet")
            found.append(float(await page.evaluate(PAINT)))
            await context.close()
    return Figure("first contentful paint in Chromium, after a minute", "ms", tuple(found))


async def main(trace: Path, days: int, runs: int) -> None:
    """Measure and print."""
    clock = FakeClock(STARTED)
    with tempfile.TemporaryDirectory() as folder:
        async with pool_of(Path(folder), trace, days, clock) as pool:
            with served(lambda: application(pool, {"ada": ADMIN}, clock=clock)) as address:
                figures = [*await answers(address, clock, runs), await paints(address, clock, runs)]
    show(f"The page Fleet, {sum(map(len, NODES))} GPUs, {days} days", figures)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trace", nargs="?", type=Path, default=WEEK)
    options.add_argument("--days", type=int, default=400)
    options.add_argument("--runs", type=int, default=7)
    given = options.parse_args()
    asyncio.run(main(given.trace, given.days, given.runs))
