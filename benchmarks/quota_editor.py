"""Cost of the what-if beside the quota editor, and its delay after typing.

``python benchmarks/quota_editor.py [--users 500] [--jobs 300] [--runs 9]``: the real page over a
pool on this machine, with a bench quota and a project of their own for each user, comments in the
file, and two thirds of the jobs running. As the page's script does after each pause in typing, each
run requests the effect of another value. The processor time is that of the whole process, including
the answer's page.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import checkout  # noqa: F401
import httpx
from tables import Figure, show

from benchpool_scheduler.configuration import load
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.service import Caller
from benchpool_support.pools import ADMIN, make_pool, opened, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.stage import application, served

XSRF = re.compile(r'data-xsrf="([^"]+)"')
BASE = re.compile(r'name="base" value="(\d+)"')


def text_of(users: int, gpus: int) -> str:
    """Return a configuration in which each user has a bench GPU by name and a project."""
    names = [f"user{number:03}" for number in range(users)]
    benches = "\n".join(f"    {name}: 0" for name in names)
    projects = "\n".join(
        f"  # {name} since 2025\n  - {{name: {name}, parent: all, quota: {index < gpus:d}, "
        f"members: [{name}]}}"
        for index, name in enumerate(names)
    )
    head = f"version: 1\nbuild:\n  users:\n{benches}\nprojects:\n  - {{name: all, quota: {gpus}}}\n"
    return f"{head}{projects}\n"


async def measured(folder: Path, users: int, jobs: int, runs: int) -> list[Figure]:
    """Return the figures of both pages."""
    gpus = jobs * 2 // 3
    text = text_of(users, gpus)
    (folder / "benchpool.yaml").write_text(text)
    people = tuple(HubUser(f"user{number:03}") for number in range(users))
    made = make_pool(
        folder,
        configuration=load(text),
        runtime=ScriptedRuntime(devices(gpus)),
        directory=StaticDirectory((*people, HubUser("ada", admin=True))),
        configuration_file=folder / "benchpool.yaml",
    )
    async with opened(made) as pool:
        for number in range(jobs):
            await pool.jobs.submit(Caller(f"user{number % users:03}"), sleeper())
        with served(lambda: application(pool, {"ada": ADMIN})) as url:
            async with httpx.AsyncClient(
                base_url=url, cookies={"reader": "ada"}, trust_env=False, timeout=120
            ) as client:
                return [
                    *await asked(client, "quotas", "set:projects.user001.quota", runs),
                    *await asked(client, "people", "set:build.users.user001", runs),
                ]


async def asked(client: httpx.AsyncClient, page: str, key: str, runs: int) -> list[Figure]:
    """Type another value into one field ``runs`` times."""
    form = await opened_form(client, page)
    costs, waits = [], []
    for run in range(runs + 1):
        began, used = time.perf_counter(), time.process_time()
        answer = await client.post(f"{page}/preview", data={**form, key: str(run % 2 + 2)})
        cost, wait = time.process_time() - used, time.perf_counter() - began
        if answer.status_code != 200 or "1 value to change" not in answer.text:
            raise SystemExit(f"{page}: {answer.status_code} {answer.text[-2000:]}")
        if run:  # the first run fills the caches
            costs.append(cost * 1000)
            waits.append(wait * 1000)
    return [
        Figure(f"{page}: what-if, processor time", "ms", tuple(costs)),
        Figure(f"{page}: what-if, until it is answered", "ms", tuple(waits)),
    ]


async def opened_form(client: httpx.AsyncClient, page: str) -> Mapping[str, str]:
    """Return the fields that the page's script sends beside the changed ones."""
    shown = (await client.get(page)).text
    token, base = XSRF.search(shown), BASE.search(shown)
    if token is None or base is None:
        raise SystemExit(f"{page} has no form: {shown[:2000]}")
    return {"_xsrf": token.group(1), "base": base.group(1)}


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--users", type=int, default=500)
    options.add_argument("--jobs", type=int, default=300)
    options.add_argument("--runs", type=int, default=9)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measured(Path(folder), chosen.users, chosen.jobs, chosen.runs))
    show("Quotas with what would change beside them", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
