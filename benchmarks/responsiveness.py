"""Duration of API reads while passes run over a large pool.

``python benchmarks/responsiveness.py [--nodes 10000] [--seconds 30]``: the pool of ``crowd.py``
behind the real API on the loopback, in a process of its own. Five readers send the requests of the
pages and the terminal, each every tenth of a second, first without other events and then while jobs
end and each end causes a pass.
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
from pathlib import Path
from typing import Any

import httpx
from tables import machine

EVERY_S = 0.1
READERS = ("team0-0", "team4-1", "team9-2", "team14-3", "root")
PATHS = ("/status?gpus=false", "/jobs?limit=50", "/jobs/{job}", "/jobs/{job}/why", "/quota")


async def read(
    url: str, person: str, number: int, until: float, seen: dict[str, list[float]]
) -> None:
    """Request each path in turn until the time is over; record the milliseconds.

    Readers begin at different times and with different paths.
    """
    headers = {"Authorization": f"token {person}"}
    async with httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as client:
        listed = await client.get(f"{url}/jobs", params={"limit": 50, "all": "true"})
        job = listed.raise_for_status().json()[-1]["id"]
        await asyncio.sleep(number * EVERY_S / len(READERS))
        while time.perf_counter() < until:
            path = PATHS[number % len(PATHS)]
            begun = time.perf_counter()
            answer = await client.get(url + path.format(job=job))
            took = time.perf_counter() - begun
            answer.raise_for_status()
            seen.setdefault(path, []).append(took * 1000)
            number += 1
            await asyncio.sleep(max(0.0, EVERY_S - took))


async def reads(url: str, seconds: float) -> dict[str, list[float]]:
    """Run all readers; return the milliseconds by path."""
    seen: dict[str, list[float]] = {}
    until = time.perf_counter() + seconds
    people = [(person, number) for number, person in enumerate(READERS)]
    await asyncio.gather(*(read(url, *one, until, seen) for one in people))
    return seen


def rows(when: str, seen: dict[str, list[float]]) -> list[str]:
    """Return a row for each path, and one for all paths together."""
    every = {**seen, "all of them": [ms for times in seen.values() for ms in times]}
    lines = []
    for path, times in every.items():
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        values = (cuts[49], cuts[94], cuts[98], max(times))
        cells = " | ".join(f"{value:.1f}" for value in values)
        name = path if path == "all of them" else f"`GET {path}`"
        lines.append(f"| {name} | {when} | {len(times)} | {cells} |")
    return lines


def next_message(server: subprocess.Popen[str]) -> Any:
    """Return the next message of the service."""
    assert server.stdout is not None
    return json.loads(server.stdout.readline())


def order(server: subprocess.Popen[str], word: str) -> None:
    """Send a command to the service."""
    assert server.stdin is not None
    server.stdin.write(f"{word}\n")
    server.stdin.flush()


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=10_000)
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--every", type=float, default=0.5, help="seconds between ends of jobs")
    chosen = options.parse_args()
    crowd = Path(__file__).resolve().parent / "crowd.py"
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(crowd), folder, str(chosen.nodes), str(chosen.every)]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            url = next_message(server)["url"]
            still = asyncio.run(reads(url, chosen.seconds / 3))
            order(server, "go")
            busy = asyncio.run(reads(url, chosen.seconds))
            order(server, "stop")
            passes = next_message(server)
    print(f"\n### Reads while passes run, {chosen.nodes:,} nodes\n\n{machine()}\n")
    print(
        f"{14 * chosen.nodes:,} jobs; {passes['passes']} passes in {chosen.seconds:g} s, "
        f"{passes['mean_pass_ms']:.0f} ms each; {passes['ended']} jobs ended, "
        f"{passes['started']} started.\n"
    )
    print("| read | while | requests | median ms | p95 ms | p99 ms | max ms |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows("nothing happens", still) + rows("passes run", busy)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
