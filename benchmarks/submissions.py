"""Rate of durably accepted submissions over HTTP, through the running service.

``python benchmarks/submissions.py [--count 1000] [--at-once 32]``: a real ``benchpool up`` with a
project whose limit is one GPU, so that the accepted jobs wait. Each answer comes after the fsync.
Eight users submit, because the rate limit is 200 requests per second and user.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import checkout  # noqa: F401
from tables import Figure, show

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support.workstation import start

CONFIGURATION = """\
version: 1
projects: [{name: queue, limit: 1, members: [ann, ben, cid, dee, eva, fay, gus, hal]}]
"""
PEOPLE = ("ann", "ben", "cid", "dee", "eva", "fay", "gus", "hal")
ROUNDS = 3


async def accept(clients: Sequence[AsyncClient], count: int, at_once: int) -> float:
    """Submit ``count`` jobs, ``at_once`` at a time; return submissions per second."""
    work = iter(range(count))
    job = JobSubmission(entry=CommandEntry(argv=["sleep", "600"]))

    async def submitter(client: AsyncClient) -> None:
        for _ in work:
            await client.submit(job)

    began = time.perf_counter()
    await asyncio.gather(*(submitter(clients[i % len(clients)]) for i in range(at_once)))
    return count / (time.perf_counter() - began)


async def measure(url: str, tokens: Sequence[str], count: int, at_once: int) -> list[float]:
    """Return the rate of each round."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(Credentials(url, token)))
            for token in tokens
        ]
        return [await accept(clients, count, at_once) for _ in range(ROUNDS)]


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--at-once", type=int, default=32)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "benchpool.yaml"
        config.write_text(CONFIGURATION)
        with start(Path(folder) / "state", gpus=1, config=config, clear=False) as up:
            for name in PEOPLE:
                up.add_user(name)
            tokens = [up.token_of(name) for name in PEOPLE]
            url = up.ready["scheduler_api"].removesuffix("/api/v1")
            rates = asyncio.run(measure(url, tokens, chosen.count, chosen.at_once))
            up.clear()
    what = f"accepted durably over HTTP and the Hub's proxy, {chosen.at_once} at once"
    show("Submissions", [Figure(what, "submissions/s", tuple(rates))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
