"""The dashboard over the real pool: real store, real passes, real processes, simulated GPUs."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.service import Pool
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
)
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

PEOPLE = {"susan": SUSAN, "joe": JOE, "ada": ADMIN}

FOLLOWED = """
import os, pathlib, time
print("first line", flush=True)
while not pathlib.Path(os.environ["BENCHPOOL_NOTICE_FILE"]).exists():
    time.sleep(0.02)
print("told to stop", flush=True)
"""
PAUSES = FOLLOWED + "raise SystemExit(3)"


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path)) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool) -> AsyncIterator[str]:
    with served(lambda: application(pool, PEOPLE)) as url:
        yield url


async def test_administrators_read_the_audit_trail_and_others_do_not(
    pool: Pool, address: str, browser: Browser
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(name="audited"))
    await reached(pool, job.id, State.RUNNING)
    page = await opens(browser, address, "susan")
    await page.get_by_role("button", name="Pause audited").click()
    await expect(page.get_by_role("status").filter(has_text="audited")).to_be_visible()
    trail = await (await browser.new_context()).new_page()
    await trail.context.add_cookies([{"name": "reader", "value": "ada", "url": address}])
    await trail.goto(address + f"audit?target={job.id}")
    row = trail.get_by_role("row").filter(has_text="pause").first
    await expect(row.get_by_role("cell", name="susan", exact=True)).to_be_visible()
    await expect(row).to_contain_text("127.0.0.1")
    refused = await page.goto(address + "audit")
    assert refused is not None
    assert refused.status == 403


async def opens(browser: Browser, url: str, reader: str, path: str = "") -> Page:
    context = await browser.new_context()
    await context.add_cookies([{"name": "reader", "value": reader, "url": url}])
    page = await context.new_page()
    await page.goto(url + path)
    await expect(page.locator("#live")).to_have_text("live")
    return page


async def test_who_runs_over_quota_who_waits_and_who_holds_a_bench_is_on_the_page(
    pool: Pool, address: str, browser: Browser
) -> None:
    page = await opens(browser, address, "ada")
    await expect(page.locator(".answer")).to_have_text(re.compile("^0 of 9 GPUs work"))
    large = await pool.jobs.submit(SUSAN, sleeper(name="large", gpus=4))
    await reached(pool, large.id, State.RUNNING)
    row = page.locator(f"#running [data-key='{large.id}']")
    await expect(row).to_contain_text("over quota")
    await expect(page.locator(".squares .gpu-over")).to_have_count(2)
    await expect(page.locator(".squares .gpu-train")).to_have_count(2)
    waits = await pool.jobs.submit(SUSAN, sleeper(name="waits", gpus=6))
    reason = page.locator(f"#queue [data-key='{waits.id}'] .reason")
    await expect(reason).to_have_text(re.compile(r"\d"))
    await pool.benches.reserve(HUB, LeaseRequest(user="joe", server="paper", spawn="s1", gpus=1))
    await expect(page.locator("#benches")).to_contain_text("server “paper”")
    await expect(page.locator("#benches [data-key='joe']")).to_contain_text("1 of 1 GPU")
    others = await opens(browser, address, "joe")
    await expect(others.locator("#running")).to_contain_text("1 job running, you see none")
    assert large.id not in await others.content()


async def test_an_owner_reads_why_an_administrator_cancelled(
    pool: Pool, address: str, browser: Browser
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(name="doomed", gpus=1))
    await reached(pool, job.id, State.RUNNING)
    owner = await opens(browser, address, "susan")
    page = await opens(browser, address, "ada")
    await page.locator("summary[aria-label^='Cancel doomed']").click()
    await expect(page.locator("input[name=reason]:focus")).to_have_count(1)
    await page.keyboard.type("Cooling fails at noon")
    await page.keyboard.press("Enter")
    await reached(pool, job.id, State.CANCELLED)
    ended = owner.locator(f"#ended [data-key='{job.id}']")
    await expect(ended).to_contain_text("cancelled")
    await expect(ended).to_contain_text("Cooling fails at noon")


async def test_the_log_of_a_running_job_comes_in_as_it_is_written(
    pool: Pool, address: str, browser: Browser
) -> None:
    job = await pool.jobs.submit(SUSAN, python_job(FOLLOWED, name="talks"))
    await reached(pool, job.id, State.RUNNING)
    page = await opens(browser, address, "susan", f"jobs/{job.id}")
    await expect(page.locator("#log")).to_contain_text("first line")
    await page.get_by_role("button", name="Pause talks").click()
    await expect(page.locator("#log")).to_contain_text("told to stop")
    await expect(page.locator("#logstate")).to_have_text("The log is complete.")
    await expect(page.locator(".jobhead")).to_contain_text("succeeded")


async def test_a_job_paused_by_its_user_is_resumed_from_the_page(
    pool: Pool, address: str, browser: Browser
) -> None:
    job = await pool.jobs.submit(SUSAN, python_job(PAUSES, name="nap"))
    await reached(pool, job.id, State.RUNNING)
    log = await opens(browser, address, "susan", f"jobs/{job.id}")
    await expect(log.locator("#log")).to_contain_text("first line")
    page = await opens(browser, address, "susan")
    await page.get_by_role("button", name="Pause nap").click()
    await expect(page.locator(f"#paused [data-key='{job.id}']")).to_contain_text("paused")
    await page.locator("#paused").get_by_role("button", name="Resume nap").click()
    await expect(page.locator(f"#running [data-key='{job.id}']")).to_contain_text("running")
    await expect(page.locator(f"#running [data-key='{job.id}'] [data-label=Attempt]")).to_have_text(
        "2"
    )
