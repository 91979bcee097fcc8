"""The pages of sweeps in a real browser over a real pool."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.sweeps import (
    TASK,
    ListedValues,
    SweepMethod,
    SweepPlan,
    SweepRequest,
    SweepStop,
    ValueRange,
)
from benchpool_scheduler.runtime import EndedBy, ReportedValue, WorkerMetrics
from benchpool_scheduler.service import Pool
from benchpool_support.browser import opened_by
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened
from benchpool_support.scripted import STARTED, ScriptedRuntime, devices
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CALLERS = {"susan": SUSAN, "joe": JOE, "ada": ADMIN}
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
PLAN = SweepPlan(
    {
        "lr": ValueRange(1e-5, 1e-1, log=True),
        "layers": ValueRange(2, 12, whole=True),
        "optimizer": ListedValues(["adam", "sgd"]),
    },
    method=SweepMethod.RANDOM,
    metric="val_loss",
    trials=8,
    max_concurrent=6,
)
TRAIN = JobSubmission(entry=CommandEntry(["python3", "train.py", "{lr}"]), name="rates")


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


async def six_that_report(pool: Pool, clock: FakeClock) -> str:
    runtime = pool.runtime
    assert isinstance(runtime, ScriptedRuntime)
    sweep = await pool.sweeps.begin(SUSAN, SweepRequest(TRAIN, PLAN))
    workers = await runtime.until_launched(6)
    clock.pass_s(3600)
    for place, worker in enumerate(workers):
        value = ReportedValue("val_loss", 0.9 - place / 10, clock.now(), 100)
        runtime.report(WorkerMetrics(worker, clock.now(), (value,)))
    runtime.end(workers[5], 0, EndedBy.ITSELF, at=clock.now())
    await runtime.until_launched(7)
    return sweep.id


async def test_trials_are_listed_best_first_with_chart(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    sweep = await six_that_report(pool, clock)
    page = await opened_by(browser, address, "sweeps", reader="susan")
    await page.get_by_role("link", name="rates").click()
    main = page.locator("main")
    await expect(main).to_contain_text("7 of 8 trials begun: 1 done, 6 under way.")
    await expect(main).to_contain_text("The lowest val_loss is 0.4, of trial 5.")
    rows = page.get_by_role("table", name="Trials").get_by_role("row")
    await expect(rows.nth(1)).to_contain_text("0.4 ★")
    await expect(rows.nth(1).get_by_role("rowheader")).to_have_text("5")
    picture = page.get_by_role("img")
    await expect(picture.locator("polyline")).to_have_count(6)
    label = str(await picture.get_attribute("aria-label"))
    assert label.startswith("The best, trial 5, has lr ")
    assert (await page.evaluate(CONTRAST))[0] == []
    if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
        await page.screenshot(path=f"{folder}/sweep.png", full_page=True)
    await page.get_by_role("link", name="Curves of these trials").click()
    await expect(page.locator("h1")).to_contain_text("trials of the sweep rates")
    of_trials = page.get_by_role("table", name="Parameters and metrics")
    best = of_trials.get_by_role("row").filter(has_text="★")
    await expect(best.get_by_role("rowheader")).to_contain_text("#5 lr ")
    await expect(page.locator("footer")).to_contain_text(f"benchpool compare --sweep {sweep[:8]}")
    headings = await of_trials.get_by_role("columnheader").all_inner_texts()
    assert {"lr", "layers", "optimizer", "val_loss, least"} <= set(headings), headings
    if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
        await page.screenshot(path=f"{folder}/trials-compared.png", full_page=True)
    await page.go_back()
    await rows.nth(1).get_by_role("link", name="5").click()
    await expect(page.locator("main")).to_contain_text("rates #5")
    await page.get_by_role("link", name="sweep rates").click()
    await expect(page).to_have_url(re.compile(f"/sweeps/{sweep}$"))


async def test_sweep_is_stopped_by_owner_or_administrator_with_reason(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    sweep = await six_that_report(pool, clock)
    other = await opened_by(browser, address, f"sweeps/{sweep}", reader="joe")
    await expect(other.locator("main")).to_contain_text("There is no sweep with the id")
    page = await opened_by(browser, address, f"sweeps/{sweep}", reader="susan")
    await page.get_by_role("button", name="Start no further trial").click()
    await expect(page.locator("main")).to_contain_text(
        "No further trial begins: its owner stopped it."
    )
    await expect(page.get_by_role("button", name="Start no further trial")).to_have_count(0)
    admins = await opened_by(browser, address, f"sweeps/{sweep}", reader="ada")
    await admins.get_by_label("Reason").fill("new disk")
    await admins.get_by_role("button", name="Stop, and end its trials").click()
    runtime = pool.runtime
    assert isinstance(runtime, ScriptedRuntime)
    notices = await runtime.until_noticed(6)
    assert {notice.kind for _, notice in notices} == {"cancel"}
    assert (await pool.sweeps.stop(SUSAN, sweep, SweepStop())).trials


async def test_owner_keeps_best_trial_and_ends_others(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    sweep = await six_that_report(pool, clock)
    page = await opened_by(browser, address, f"sweeps/{sweep}", reader="susan")
    await page.get_by_role("button", name="Keep the best, end the others").click()
    await expect(page.locator("main")).to_contain_text("No further trial begins")
    runtime = pool.runtime
    assert isinstance(runtime, ScriptedRuntime)
    best = (await pool.sweeps.show(SUSAN, sweep)).trials[0]
    noticed = {worker.job for worker, _ in await runtime.until_noticed(5)}
    assert noticed == {worker.job for worker in runtime.launched} - {best.job}


async def test_array_has_row_per_task_number(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    plan = SweepPlan({TASK: ListedValues([3, 5, 7])}, max_concurrent=2, array=True)
    fold = JobSubmission(entry=CommandEntry(["python3", "fold.py"]), name="folds")
    array = await pool.sweeps.begin(SUSAN, SweepRequest(fold, plan))
    runtime = pool.runtime
    assert isinstance(runtime, ScriptedRuntime)
    first, _ = await runtime.until_launched(2)
    runtime.end(first, 0, EndedBy.ITSELF, at=clock.now())
    await runtime.until_launched(3)
    page = await opened_by(browser, address, f"sweeps/{array.id}", reader="susan")
    await expect(page.locator("h1")).to_contain_text("folds array of susan")
    await expect(page.locator("main")).to_contain_text("3 of 3 tasks begun: 1 done, 2 under way.")
    tasks = page.get_by_role("table", name="Tasks").get_by_role("rowheader")
    await expect(tasks).to_have_text(["3", "5", "7"])
    await expect(page.get_by_role("button", name="Stop, and end its tasks")).to_have_count(1)
    page = await opened_by(browser, address, "sweeps", reader="susan")
    row = page.get_by_role("row").filter(has_text="folds")
    await expect(row).to_contain_text("folds array")
    page = await opened_by(browser, address, f"jobs/{first.job}", reader="susan")
    await expect(page.get_by_role("link", name="array folds")).to_have_count(1)
