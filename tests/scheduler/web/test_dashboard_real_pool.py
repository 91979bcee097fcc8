"""The dashboard over a real pool: real store, passes and processes, with simulated GPUs."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.contract.audit import AuditQuery
from benchpool_scheduler.service import Pool
from benchpool_support.browser import opened_by
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


async def test_audit_trail_is_visible_only_to_administrators(
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
    page = await opened_by(browser, url, path, reader)
    await expect(page.locator("#live")).to_have_text("live")
    return page


async def test_dashboard_shows_over_quota_jobs_queue_and_benches(
    pool: Pool, address: str, browser: Browser
) -> None:
    page = await opens(browser, address, "ada")
    await expect(page.locator(".answer")).to_have_text(re.compile("^9 GPUs: "))
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


async def test_owner_sees_cancel_reason_of_administrator(
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


async def test_running_job_log_is_streamed(pool: Pool, address: str, browser: Browser) -> None:
    job = await pool.jobs.submit(SUSAN, python_job(FOLLOWED, name="talks"))
    await reached(pool, job.id, State.RUNNING)
    page = await opens(browser, address, "susan", f"jobs/{job.id}")
    await expect(page.locator("#log")).to_contain_text("first line")
    await page.get_by_role("button", name="Pause talks").click()
    await expect(page.locator("#log")).to_contain_text("told to stop")
    await expect(page.locator("#logstate")).to_have_text("The log is complete.")
    await expect(page.locator(".jobhead")).to_contain_text("succeeded")


MANY_LINES = """
for number in range(1, 2001):
    print(f"line {number}: <i>{'x' * 80}</i>")
"""


async def test_log_lines_and_attempts_have_links(
    pool: Pool, address: str, browser: Browser
) -> None:
    job = await pool.jobs.submit(SUSAN, python_job(MANY_LINES, name="many"))
    await reached(pool, job.id, State.SUCCEEDED)
    page = await opens(browser, address, "susan", f"jobs/{job.id}")
    await page.get_by_role("link", name="Number the lines").click()
    numbered = page.locator("pre.lines")
    await expect(numbered.locator("span").last).to_contain_text("line 2000: <i>")
    await numbered.get_by_role("link", name="Line 1950", exact=True).click()
    assert page.url.endswith("?attempt=1&worker=0&line=1950#L1950")
    await expect(numbered.locator("[aria-current]")).to_contain_text("1950 line 1950: <i>")
    page = await opens(browser, address, "susan", f"jobs/{job.id}?line=700")
    numbered = page.locator("pre.lines")
    await expect(numbered.locator("[aria-current]")).to_contain_text("line 700: <i>")
    await expect(numbered.locator("span").first).to_contain_text("line 600: ")
    await expect(numbered.locator("span").last).to_contain_text("line 1100: ")
    await page.get_by_role("link", name="Back to the end of the log").click()
    await expect(page.locator("#log")).to_contain_text("line 2000: ")
    await page.locator("[data-label=Attempt]").get_by_role("link", name="1").click()
    assert page.url.endswith("?attempt=1#log-h")


async def test_paused_job_is_resumed_from_page(pool: Pool, address: str, browser: Browser) -> None:
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


LEAVES = """
import os, pathlib
print("written")
pathlib.Path(os.environ["BENCHPOOL_OUTPUT_DIR"], "large").write_bytes(b"x" * 3 * 2**20)
"""


async def test_files_of_ended_job_are_deleted_from_page(
    pool: Pool, address: str, browser: Browser
) -> None:
    job = await pool.jobs.submit(SUSAN, python_job(LEAVES, name="leaves"))
    await reached(pool, job.id, State.SUCCEEDED)
    page = await opens(browser, address, "susan", f"jobs/{job.id}")
    await page.locator("summary[aria-label^='Delete files of leaves']").click()
    sheet = page.get_by_role("group", name="Delete files of leaves")
    results = sheet.get_by_label(re.compile("^Results"))
    await expect(sheet).to_contain_text(re.compile(r"Results \(3\.0 MiB\)"))
    await expect(sheet.get_by_role("checkbox")).to_have_count(2)
    await expect(sheet).to_contain_text(re.compile(r"Logs \(\d+\.0 KiB\)"))
    folder = pool.observed.settings.state / "jobs" / job.id / "output"
    await sheet.get_by_role("button", name="Delete for good").click()
    await expect(page.locator("#flash")).to_contain_text("Name the files to delete")
    assert (folder / "large").exists()
    await page.locator("summary[aria-label^='Delete files of leaves']").click()
    await results.check()
    await sheet.get_by_role("button", name="Delete for good").click()
    await expect(page.locator("#flash")).to_contain_text("The chosen files of leaves are deleted.")
    assert not folder.exists()
    await expect(page.locator("form[data-key=discard] input[type=checkbox]")).to_have_count(1)
    done = (await pool.audit.read(ADMIN, AuditQuery(target=job.id))).records
    assert [one.action for one in done][:1] == ["discard"]


async def test_running_job_offers_no_file_deletion(
    pool: Pool, address: str, browser: Browser
) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(name="goes-on"))
    await reached(pool, job.id, State.RUNNING)
    page = await opens(browser, address, "susan", f"jobs/{job.id}")
    await expect(page.locator("summary[aria-label^='Change goes-on']")).to_have_count(1)
    await expect(page.locator("summary[aria-label^='Delete files']")).to_have_count(0)


async def test_reclaimable_gpus_are_shown_and_obtained(
    pool: Pool, address: str, browser: Browser
) -> None:
    for _ in range(6):
        borrowing = await pool.jobs.submit(JOE, sleeper())
        await reached(pool, borrowing.id, State.RUNNING)
    page = await opened_by(browser, address, "mine", "susan")
    reclaimable = "none now; 2 GPUs of the quota after jobs over quota pause (20 s at most)"
    await expect(page.locator("#quota")).to_contain_text(reclaimable)
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
    await reached(pool, job.id, State.RUNNING)
    await page.reload()
    await expect(page.locator("#quota")).to_contain_text("none is free")
