"""The page of use and waste in a real browser, over a real pool with a controlled clock."""

from __future__ import annotations

import csv
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.contract.use import UseBy, UseQuery
from benchpool_scheduler.service import Pool
from benchpool_scheduler.telemetry import GpuSample, HeldSample, Holder
from benchpool_support.browser import opened_by
from benchpool_support.clocks import FakeClock
from benchpool_support.measured import steady
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import STARTED, ScriptedRuntime, machine
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CALLERS = {"susan": SUSAN, "joe": JOE, "ada": ADMIN}
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
HOUR = 3600.0
TEXT = """
version: 1
build: {users: {susan: 1}, reserve: 2}
projects:
  - {name: vision, quota: 4, members: [susan]}
  - {name: speech, quota: 2, members: [joe]}
prices: {currency: EUR, gpu_hour: {A100: 1.2, H200: 3}}
"""


@pytest_asyncio.fixture(loop_scope="module")
async def clock() -> FakeClock:
    return FakeClock(STARTED)


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Pool]:
    runtime = ScriptedRuntime((*machine("gpu-01"), *machine("gpu-02", "H200")))
    made = make_pool(tmp_path, configuration=story(TEXT), runtime=runtime, clock=clock)
    async with opened(made) as pool:
        await pool.use.report(ADMIN, UseQuery())
        await an_afternoon(pool, clock)
        yield pool


async def an_afternoon(pool: Pool, clock: FakeClock) -> None:
    """Record six hours of a mostly idle bench, two computing jobs and free GPUs."""
    clock.pass_s(HOUR)
    lease = await pool.benches.reserve(HUB, LeaseRequest("susan", "", "1", 1))
    holders: dict[str, Holder] = {
        lease.gpus[0]: Holder(bench=lease.id, server="", user="susan"),
    }
    for who, project, gpus in ((SUSAN, "vision", 3), (JOE, "speech", 1)):
        sent = await pool.jobs.submit(who, sleeper(gpus=gpus))
        await reached(pool, sent.id, State.RUNNING)
        held = [gpu for gpu, job in pool.ledger.counters.holders.items() if job == sent.id]
        holder = Holder(job=sent.id, attempt=1, worker=0, user=who.name, project=project)
        holders |= dict.fromkeys(held, holder)
    begin = clock.now()
    clock.pass_s(6 * HOUR)
    samples = [
        GpuSample(begin + at + 60, 60.0, gpu, activity=_activity(holder, at), energy_j=18_000.0)
        for gpu, holder in holders.items()
        for at in range(0, int(5.5 * HOUR), 60)
    ]
    pool.use.telemetry.write([HeldSample(it, holders[it.gpu]) for it in samples])


def _activity(holder: Holder, at: int) -> float:
    if holder.bench is not None:
        return 0.8 if at % 3600 < 300 else 0.0
    if at < 600:
        return 0.0
    return 0.92 if holder.project == "vision" else 0.35


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool, clock: FakeClock) -> AsyncIterator[str]:
    with served(lambda: application(pool, CALLERS, clock=clock)) as url:
        yield url


async def test_use_charts_match_tables_and_fit_phone(
    pool: Pool, address: str, browser: Browser
) -> None:
    found = await pool.use.report(ADMIN, UseQuery(by=UseBy.PROJECT))
    shown = [one for one, hours in found.total.gpu_h.items() if hours > 0]
    folder = os.environ.get("BENCHPOOL_SCREENSHOTS")
    for scheme in ("light", "dark"):
        for width in (1440, 390):
            page = await opened_by(
                browser, address, "report?period=30", width=width, color_scheme=scheme
            )
            await expect(page.locator("h1")).to_contain_text("of the whole pool")
            await expect(page.locator(".answer")).to_contain_text("GPU-hours, of them")
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            weak, _ = await page.evaluate(CONTRAST)
            assert weak == []
            if folder:
                file = Path(folder) / f"use-{scheme}-{width}.png"
                await page.screenshot(path=file, full_page=True)
            first = page.locator("svg.usebar").first
            assert await first.locator("rect").count() == len(shown)
            await page.get_by_text("The same as a table").click()
            twin = page.get_by_role("table", name="All GPU-hours by class")
            assert await twin.locator("tbody tr").count() == len(shown)
    fills = await first.locator("rect").evaluate_all(
        "rects => rects.map((rect) => getComputedStyle(rect).fill)"
    )
    assert len(set(fills)) == len(shown), "two classes look the same"


async def test_use_report_is_downloaded_as_csv(address: str, browser: Browser) -> None:
    page = await opened_by(browser, address, "report?period=1&by=user")
    async with page.expect_download() as coming:
        await page.get_by_role("link", name="CSV").click()
    download = await coming.value
    assert download.suggested_filename == "benchpool-use-user-1.csv"
    rows = list(csv.DictReader(Path(await download.path()).read_text().splitlines()))
    assert [(row["user"], row["held_gpu_h"]) for row in rows] == [
        ("susan", "24.0"),
        ("joe", "6.0"),
        ("", "0.0"),
    ]


async def test_user_sees_only_own_use_for_selected_period(address: str, browser: Browser) -> None:
    page = await opened_by(browser, address, "report", reader="joe")
    await expect(page.locator("h1")).to_contain_text("your own")
    await page.get_by_role("combobox", name="By").select_option("user")
    await page.get_by_role("combobox", name="Time").select_option("last 7 days")
    await page.get_by_role("button", name="Show").click()
    table = page.get_by_role("table", name="All rows")
    await expect(table).to_contain_text("joe")
    await expect(table).not_to_contain_text("susan")
    await expect(page.locator("code").first).to_have_text("benchpool report --from 7d --by user")


async def test_unheld_gpus_are_named_only_to_administrators(address: str, browser: Browser) -> None:
    for reader, whose in (
        ("ada", "no project: benches, and GPUs without a holder"),
        ("susan", "no project: benches"),
    ):
        page = await opened_by(browser, address, "report?period=30", reader=reader)
        row = page.get_by_role("table", name="All rows").locator("tbody tr").last
        await expect(row.locator("th")).to_have_text(whose)


async def test_invalid_report_period_is_rejected(address: str, browser: Browser) -> None:
    page = await opened_by(browser, address, "report?period=2999-01")
    await expect(page.locator("main")).to_contain_text("in the future")


async def test_replay_button_shows_sufficient_gpu_count(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    page = await opened_by(browser, address, "report")
    await page.get_by_role("button", name="Replay").click()
    await expect(page.get_by_role("alert")).to_contain_text("there is no history to replay")
    runtime = pool.runtime
    assert isinstance(runtime, ScriptedRuntime)
    for worker in list(runtime.launched):
        runtime.end(worker, at=clock.now())
        await reached(pool, worker.job, State.SUCCEEDED)
    # The message advises more days, and the page has a field for them.
    await page.get_by_label("Days to replay").fill("90")
    await page.get_by_role("button", name="Replay").click()
    await expect(page.locator("main")).to_contain_text("of the last 90 days")
    await expect(page.get_by_label("Days to replay")).to_have_value("90")
    await expect(page.locator("main")).to_contain_text("4 GPUs in one pool would have been enough")
    await expect(page.get_by_role("table", name="Static shares")).to_contain_text("vision")
    others = await opened_by(browser, address, "report", reader="joe")
    await expect(others.get_by_role("button", name="Replay")).to_have_count(0)


async def test_idle_bench_replay_shows_reclaimable_gpus(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    now = clock.now()
    tom = Holder(bench="lease-of-tom", server="lab", user="tom")
    pool.metering.database.write(steady("gpu-09/0", now - 6 * HOUR, now, 0.0, tom, span_s=60.0))
    page = await opened_by(browser, address, "report")
    await page.get_by_role("button", name="Calculate").click()
    table = page.get_by_role("table", name="What would reclaiming idle benches free?")
    await expect(table.get_by_role("row").nth(1)).to_contain_text("tom")
    main = page.locator("main")
    await expect(main).to_contain_text("Reclaimed after 1 h of idleness")
    await expect(main).to_contain_text("This answer reclaimed no GPUs.")
    await page.get_by_label("Idle time in minutes").fill("600")
    await page.get_by_role("button", name="Calculate").click()
    await expect(main).to_contain_text("No bench was idle for 10 h")
    await expect(main).to_contain_text("benchpool idle-benches --minutes 600")
    if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
        page = await opened_by(browser, address, "report?idle=60")
        await page.screenshot(path=Path(folder) / "idle-benches.png", full_page=True)
    wrong = await opened_by(browser, address, "report?idle=soon")
    await expect(wrong.get_by_role("alert")).to_contain_text("minutes")
    others = await opened_by(browser, address, "report?idle=60", reader="joe")
    await expect(others.locator("main")).not_to_contain_text("idle benches")
