"""Pages for administrators: closing machines, and the effect of more GPUs."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.nodes import NodeIntake
from benchpool_scheduler.runtime import Device, Launch
from benchpool_scheduler.service import Pool
from benchpool_support.browser import opened_by
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened, reached, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CALLERS = {"susan": SUSAN, "ada": ADMIN}
TEXT = """
version: 1
build: {users: {}, reserve: 0}
projects: [{name: susan, quota: 4, members: [susan]}]
"""
HOUR_S = 3600.0


class ClockedRuntime(ScriptedRuntime):
    """Scripted runtime whose workers begin immediately, at the time of the test's clock."""

    def __init__(self, clock: FakeClock) -> None:
        names = ("gpu-01", "gpu-02")
        gpus = (
            Device(f"{n}/{i}", i, "A100", n, 81920, simulated=False) for n in names for i in (0, 1)
        )
        super().__init__(tuple(gpus), start_at_once=False)
        self.clock = clock

    async def run_worker(self, launch: Launch) -> None:
        """Record the launch and begin the worker."""
        await super().run_worker(launch)
        self.begin(launch.worker, self.clock.now())


@pytest_asyncio.fixture(loop_scope="module")
async def clock() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Pool]:
    runtime = ClockedRuntime(clock)
    made = make_pool(tmp_path, configuration=story(TEXT), runtime=runtime, clock=clock)
    async with opened(made) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool) -> AsyncIterator[str]:
    with served(lambda: application(pool, CALLERS)) as url:
        yield url


async def shots(browser: Browser, address: str, path: str, name: str) -> None:
    """Take screenshots of a page if a folder for them is configured."""
    folder = os.environ.get("BENCHPOOL_SCREENSHOTS")
    for scheme in ("light", "dark") if folder else ():
        for width in (1440, 390):
            page = await opened_by(browser, address, path, width=width, color_scheme=scheme)
            file = Path(str(folder)) / f"{name}-{scheme}-{width}.png"
            await page.screenshot(path=file, full_page=True)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_machine_is_drained_noted_maintained_and_uncordoned(
    pool: Pool, address: str, browser: Browser
) -> None:
    page = await opened_by(browser, address, "machines", timezone_id="Europe/Berlin")
    row = page.locator("#machine-gpu-01")
    await expect(row).to_contain_text("yes")
    await row.get_by_label("Drain gpu-01 …").click()
    await row.get_by_label("Reason, for waiting users").first.fill("new disk")
    await row.get_by_role("button", name="Drain now").click()
    await expect(row).to_contain_text("no: drains")
    await expect(row).to_contain_text("new disk")
    await row.get_by_label("Note on gpu-01 …").click()
    await row.get_by_label("Note (empty: no note)").fill("fan 2 is loud")
    await row.get_by_role("button", name="Save note").click()
    await expect(row).to_contain_text("fan 2 is loud")
    other = page.locator("#machine-gpu-02")
    await other.get_by_label("Maintenance of gpu-02 …").click()
    await expect(other).to_contain_text("Begins (Europe/Berlin)")
    await other.get_by_label("Begins").fill("2027-07-01T08:00")
    await other.get_by_label("Reason, for waiting users").nth(1).fill("new power supply")
    await other.get_by_role("button", name="Set window").click()
    berlin = re.compile(r"Jul 1, 2027, 08:00.AM GMT\+2 to Jul 1, 2027, 12:00.PM GMT\+2")
    await expect(other).to_contain_text(berlin)
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    waits = await reached(pool, job.id, State.QUEUED)
    assert waits.state is State.QUEUED
    dashboard = await opened_by(browser, address, "")
    await expect(dashboard.locator("main")).to_contain_text("closed")
    await shots(browser, address, "machines", "machines")
    await shots(browser, address, "", "pool-with-closed-machines")
    for name, opening in (("gpu-01", "Uncordon"), ("gpu-02", "Cancel maintenance")):
        at = page.locator(f"#machine-{name}")
        await at.get_by_label(f"{opening} {name}").click()
        await expect(at).to_contain_text("yes")
    assert {it.intake for it in pool.nodes.nodes(ADMIN)} == {NodeIntake.OPEN}
    await reached(pool, job.id, State.RUNNING)


async def test_refused_maintenance_names_machine(address: str, browser: Browser) -> None:
    page = await opened_by(browser, address, "machines")
    row = page.locator("#machine-gpu-01")
    await row.get_by_label("Maintenance of gpu-01 …").click()
    await row.get_by_label("Begins").fill("2020-07-01T08:00")
    await row.get_by_label("Reason, for waiting users").nth(1).fill("late")
    await row.get_by_role("button", name="Set window").click()
    await expect(page.get_by_role("alert")).to_contain_text("gpu-01: This window would have ended")


async def test_machine_pages_are_for_administrators(address: str, browser: Browser) -> None:
    for path in ("machines", "growth"):
        page = await opened_by(browser, address, path, reader="susan")
        await expect(page.locator("h1")).to_have_text("Not allowed")


async def test_growth_slider_replays_pool_history(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    runtime = pool.runtime
    assert isinstance(runtime, ClockedRuntime)
    jobs = [await pool.jobs.submit(SUSAN, sleeper(gpus=2, workers=2)) for _ in range(3)]
    for job in jobs:  # one after another: each needs all four GPUs for an hour
        await reached(pool, job.id, State.RUNNING)
        clock.pass_s(HOUR_S)
        for worker in [it for it in runtime.launched if it.job == job.id]:
            runtime.end(worker, at=clock.now())
        await reached(pool, job.id, State.SUCCEEDED)
    page = await opened_by(browser, address, "growth?days=7")
    await expect(page.locator("main")).to_contain_text("The pool has 4 for training")
    await expect(page.locator("main")).to_contain_text("Move the slider")
    await page.locator("#more").fill("8")
    wait = page.get_by_role("row", name="Mean wait").first
    await expect(wait).to_contain_text("1 h")
    await expect(wait).to_contain_text("0 s")
    await expect(page.locator("main")).to_contain_text("3 replayed")
    await shots(browser, address, "growth?days=7&more=8", "growth")


async def test_longer_wait_with_more_gpus_is_explained(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    runtime = pool.runtime
    assert isinstance(runtime, ClockedRuntime)

    async def sent(gpus: int) -> str:
        return (await pool.jobs.submit(SUSAN, sleeper(gpus=1, workers=gpus))).id

    async def ended(job: str, after_h: float) -> None:
        await reached(pool, job, State.RUNNING)
        clock.pass_s(after_h * HOUR_S)
        for worker in [it for it in runtime.launched if it.job == job]:
            runtime.end(worker, at=clock.now())
        await reached(pool, job, State.SUCCEEDED)

    first = await sent(3)
    await reached(pool, first, State.RUNNING)
    clock.pass_s(HOUR_S)
    large = await sent(4)  # waits for the first job, so a short one fills the gap
    clock.pass_s(HOUR_S)
    await ended(await sent(1), 0.5)
    await ended(first, 7.5)
    await ended(large, 5)
    page = await opened_by(browser, address, "growth?days=7&more=3")
    short = page.get_by_role("row", name="Mean wait of jobs under 1 h")
    await expect(short).to_contain_text(
        "1 of 1 job waits longer: 1 starts later, behind jobs that run sooner."
    )
    await expect(page.get_by_role("row", name="Mean wait").first).not_to_contain_text("longer")


async def test_gpus_reserved_for_benches_are_not_training_gpus(
    tmp_path: Path, browser: Browser
) -> None:
    made = make_pool(tmp_path / "kept", runtime=ScriptedRuntime(devices(9)))
    async with opened(made) as pool:
        kept = pool.observed.now.configuration.build.users["susan"]
        with served(lambda: application(pool, CALLERS)) as url:
            page = await opened_by(browser, url, "growth")
            capacity = f"The pool has {9 - 3 * kept} for training"
            await expect(page.locator("main")).to_contain_text(capacity)
