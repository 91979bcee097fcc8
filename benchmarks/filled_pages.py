"""The pages of use and waste over a service that worked through days of a recorded trace.

``python benchmarks/filled_pages.py TRACES/philly-2017.csv.gz [--days 8] [--first-day 60]
[--pictures FOLDER] [--docs docs/screenshots] [--serve]``

The service runs in virtual time, with a real store, passes, preemptions and records; 64 GPUs, two
models, four projects, benches by day. ``benchpool_support.traced_days`` makes up the facts that the
trace lacks. Then users act: an administrator pauses a job, reclaims a bench and drains a node, and
a user selects notifications. ``--pictures`` saves each page in light and dark, wide and narrow, and
``--docs`` the pages of the how-to guides. ``--serve`` leaves it open in a browser until Ctrl-C: the
cookie ``reader`` names the user, and ``ada`` is the administrator. A day of virtual time takes
about half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from benchpool_scheduler.contract import State
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.simulation.replay.trace import read
from benchpool_support.browser import chromium, opened_by
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, make_pool, opened, story
from benchpool_support.scripted import machine
from benchpool_support.stage import application, served
from benchpool_support.traced_days import TimelyRuntime, TracedDays, chosen, newest
from benchpool_support.traced_use import TEAMS

BEGUN = 1_795_392_000.0
"""A Monday at midnight: 23 November 2026."""

NODES = tuple(
    machine(f"gpu-{number:02}", "A100" if number < 6 else "H200", 8) for number in range(1, 9)
)
LOAD = 1.05
QUOTAS = {"vision": 24, "speech": 10, "robotics": 16, "genomics": 6}
TEXT = (
    "version: 1\n"
    "build: {default: 1, reserve: 8, lend_idle: true}\n"
    "prices: {currency: CHF, gpu_hour: {A100: 2, H200: 4}}\n"
    "gpu_hours: {users: {tariq: {soft: 300, hard: 2000}}}\n"
    "projects:\n"
    + "".join(
        f"  - {{name: {team}, quota: {QUOTAS[team]}, members: [{', '.join(users)}],"
        f" leads: [{users[0]}], gpu_hours: {{soft: {QUOTAS[team] * 150}}}}}\n"
        for team, users in TEAMS.items()
    )
)
PEOPLE = {user: Caller(user) for team in TEAMS.values() for user in team} | {"ada": ADMIN}
PAGES = (
    *(("ada", "fleet"), ("ada", "report?period=7"), ("ada", "report?period=7&by=user&enough=8")),
    *(("ada", "report?period=7&idle=60"), ("ada", "history?whose=all"), ("ada", "audit")),
    *(("ada", "kiosk"), ("ada", "health"), ("ada", ""), ("susan", "report?period=7")),
    *(("joe", "report?period=7"), ("joe", "mine"), ("susan", "history"), ("susan", "mine")),
    ("susan", "notifications"),
)
"""Users and their pages: an administrator, leads and researchers."""

IN_DOCS = {"fleet": ("ada", "fleet", 1000), "use": ("ada", "report?period=7&by=user", 900),
           "my-gpus": ("joe", "mine", 760)}  # fmt: skip
"""Pictures of the how-to guides: the user, the page and the window's height in pixels."""


async def asked(address: str, who: str, method: str, path: str, **body: Any) -> None:
    """Send a request to the API, as a user's page does."""
    headers = {"Cookie": f"reader={who}", "X-XSRFToken": f"token-of-{who}"}
    await AsyncHTTPClient().fetch(
        HTTPRequest(
            f"{address}api/v1/{path}",
            method=method,
            headers=headers | {"Content-Type": "application/json"},
            body=json.dumps(body),
        )
    )


async def people_act(pool: Pool, address: str) -> None:
    """Let users take actions that are recorded, besides job submissions."""
    (bench, *_) = pool.benches.leases(ADMIN)
    running = newest(pool, ADMIN, State.RUNNING)
    acts: Sequence[tuple[str, str, str, Mapping[str, Any]]] = (
        ("ada", "POST", f"leases/{bench.id}/ask-back", {"reason": "two people wait for a GPU"}),
        ("ada", "POST", f"jobs/{running.id}/pause", {"reason": "new driver on this node"}),
        ("ada", "POST", f"jobs/{running.id}/resume", {}),
        ("ada", "POST", "nodes/gpu-03/drain", {"reason": "fan 2 is loud"}),
        ("ada", "POST", "nodes/gpu-03/open", {}),
        ("susan", "PATCH", "notifications", {"events": ["failed", "paused", "budget"]}),
        ("susan", "PATCH", "notifications", {"add": {"url": "susan@example.org"}}),
    )
    for who, method, path, body in acts:
        await asked(address, who, method, path, **body)


async def pictures(address: str, folder: Path, now: datetime) -> None:
    """Save a screenshot of each page for its users; print the pages that scroll sideways."""
    folder.mkdir(parents=True, exist_ok=True)
    async with chromium() as browser:
        for scheme, width in ((s, w) for s in ("light", "dark") for w in (1440, 390)):
            for who, path in PAGES:
                context = await browser.new_context(
                    viewport={"width": width, "height": 900}, color_scheme=scheme
                )
                await context.add_cookies([{"name": "reader", "value": who, "url": address}])
                page = await context.new_page()
                await page.clock.set_fixed_time(now)
                await page.goto(address + path)
                if path == "fleet":
                    await page.locator("#week canvas").wait_for()
                name = "".join(sign if sign.isalnum() else "-" for sign in path) or "pool"
                file = folder / f"{name}-{who}-{scheme}-{width}.png"
                await page.screenshot(path=file, full_page=True)
                if await page.evaluate("document.documentElement.scrollWidth") > width:
                    print(f"{file.name} is wider than its window")
                await context.close()


async def pictures_of_docs(address: str, folder: Path, now: datetime) -> None:
    """Save the screenshots of the how-to guides."""
    async with chromium() as browser:
        for name, (who, path, height) in IN_DOCS.items():
            page = await opened_by(browser, address, "kiosk", who, 1200)
            await page.set_viewport_size({"width": 1200, "height": height})
            await page.clock.set_fixed_time(now)
            await page.goto(address + path)
            await page.screenshot(path=folder / f"{name}.png")


async def main(options: argparse.Namespace) -> None:
    """Play the days, then show the pages."""
    clock = FakeClock(BEGUN)
    gpus = tuple(gpu for node in NODES for gpu in node)
    jobs = chosen(read(options.trace), options.first_day, options.days, len(gpus), LOAD)
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        site = {"kinds": ["https"], "mail": {"host": "127.0.0.1", "sender": "b@example.org",
                "domains": ["example.org"], "own": "{user}@example.org"}}  # fmt: skip
        (state / "notifications.yaml").write_text(json.dumps(site))
        runtime = TimelyRuntime(gpus, clock)
        made = make_pool(state, configuration=story(TEXT), runtime=runtime, clock=clock)
        async with opened(made) as pool:
            days = TracedDays(pool, clock)
            await days.live(jobs, options.days - 0.45)  # until early in an afternoon
            print(f"{len(days.sent)} jobs in {options.days} days. {pool.views.status(ADMIN).text}")
            with served(lambda: application(pool, PEOPLE, clock=clock)) as address:
                await people_act(pool, address)
                now = datetime.fromtimestamp(clock.now(), UTC)
                if options.pictures:
                    await pictures(address, options.pictures, now)
                if options.docs:
                    await pictures_of_docs(address, options.docs, now)
                if options.serve:
                    print(f"Open {address}fleet with the cookie reader=ada; Ctrl-C ends it.")
                    await asyncio.Event().wait()


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("trace", type=Path)
    given.add_argument("--days", type=int, default=8)
    given.add_argument("--first-day", type=int, default=60)
    given.add_argument("--pictures", type=Path)
    given.add_argument("--docs", type=Path)
    given.add_argument("--serve", action="store_true")
    asyncio.run(main(given.parse_args()))
