"""The page *Schedules* in a real browser over a real pool."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.schedules import Schedule, ScheduleRequest
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service import Pool
from benchpool_support.browser import opened_by
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached
from benchpool_support.scripted import STARTED, ScriptedRuntime, devices
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CALLERS = {"susan": SUSAN, "joe": JOE, "ada": ADMIN}
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
TRAIN = JobSubmission(entry=CommandEntry(["python3", "train.py"]), name="nightly")
NIGHTLY = ScheduleRequest(TRAIN, "night at 2", "Europe/Berlin")


@pytest_asyncio.fixture(loop_scope="module")
async def clock() -> FakeClock:
    return FakeClock(STARTED)


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Pool]:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool, clock: FakeClock) -> AsyncIterator[str]:
    with served(lambda: application(pool, CALLERS, clock=clock)) as url:
        yield url


async def at_its_next_time(pool: Pool, clock: FakeClock, schedule: Schedule) -> None:
    coming = pool.schedules.show(SUSAN, schedule.id).next[0].timestamp()
    clock.pass_s(coming - clock.now())
    await pool.schedules.runner.look()


async def test_schedule_shows_next_and_last_runs_at_any_width(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    schedule = await pool.schedules.begin(SUSAN, NIGHTLY)
    await at_its_next_time(pool, clock, schedule)
    runtime = pool.runtime
    assert isinstance(runtime, ScriptedRuntime)
    (worker,) = await runtime.until_launched(1)
    await at_its_next_time(pool, clock, schedule)
    runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
    await reached(pool, worker.job, State.SUCCEEDED)
    page = await opened_by(browser, address, "jobs", reader="susan")
    await page.get_by_role("link", name="Schedules").click()
    one = page.get_by_role("article", name="nightly")
    await expect(one).to_contain_text("Every night at 02:00, Europe/Berlin. Active.")
    coming = pool.schedules.show(SUSAN, schedule.id).next
    for at in coming:
        await expect(one).to_contain_text(f"{at:%a %d %b} 02:00")
    await expect(one.locator(".mark > [aria-hidden]")).to_have_text(["✓", "s"])
    await expect(one).to_contain_text(f"The previous job, {worker.job[:8]}, had not ended.")
    assert (await page.evaluate(CONTRAST))[0] == []
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await one.locator("summary").press("Enter")
    sheet = await one.locator(".sheet").bounding_box()
    assert sheet is not None
    assert 0 <= sheet["x"] <= 390 - sheet["width"]
    if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
        await page.screenshot(path=f"{folder}/schedules.png", full_page=True)
    await one.locator("summary").press("Enter")
    await one.get_by_role("link", name="succeeded").click()
    await expect(page.locator("main")).to_contain_text("nightly")


async def test_schedule_is_paused_resumed_and_removed_by_keyboard(
    pool: Pool, address: str, browser: Browser
) -> None:
    schedule = await pool.schedules.begin(SUSAN, NIGHTLY)
    page = await opened_by(browser, address, "schedules", reader="susan")
    await page.get_by_role("button", name="Pause nightly").press("Enter")
    await expect(page.get_by_role("status").first).to_contain_text("The schedule is paused")
    one = page.get_by_role("article", name="nightly")
    await expect(one).to_contain_text("Paused: susan paused it.")
    await expect(one).not_to_contain_text("Next:")
    await page.get_by_role("button", name="Resume nightly").press("Enter")
    await expect(one).to_contain_text("Active.")
    await one.locator("summary").press("Enter")
    await page.get_by_role("button", name="Remove now nightly").press("Enter")
    await expect(page.locator("main")).to_contain_text("No schedules.")
    await expect(page.locator("main")).to_contain_text("%%train --every 'night at 2'")
    with pytest.raises(NotFound):
        pool.schedules.show(SUSAN, schedule.id)


async def test_schedules_are_visible_only_to_owner_and_administrators(
    pool: Pool, address: str, browser: Browser
) -> None:
    schedule = await pool.schedules.begin(SUSAN, NIGHTLY)
    other = await opened_by(browser, address, "schedules?all=1", reader="joe")
    await expect(other.locator("main")).to_contain_text("No schedules.")
    admins = await opened_by(browser, address, "schedules", reader="ada")
    await expect(admins.locator("main")).to_contain_text("No schedules.")
    await admins.get_by_role("link", name="All that you may see").click()
    await admins.get_by_role("button", name="Pause nightly").click()
    await expect(admins.get_by_role("article", name="nightly")).to_contain_text("ada paused it.")
    assert pool.schedules.show(SUSAN, schedule.id).paused == "ada paused it."
