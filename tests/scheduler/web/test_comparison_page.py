"""Comparison page of two submissions."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace
from playwright.async_api import Browser, Page, expect

from benchpool_scheduler.contract import (
    CommandEntry,
    Job,
    JobSubmission,
    ScriptEntry,
    SnapshotFile,
    State,
)
from benchpool_scheduler.contract.run_environment import NAME, Package, RunEnvironment, Seed
from benchpool_scheduler.service import Pool
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached
from benchpool_support.stage import application, served

RUN = RunEnvironment(
    job="a" * 26,
    attempt=1,
    python="CPython 3.11.2",
    platform="Linux",
    packages=[],
    driver=None,
    cuda=None,
    image=None,
    commit=None,
    modules=[],
    data=[],
    seeds=[],
    variables=[],
)

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path)) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool) -> AsyncIterator[str]:
    with served(lambda: application(pool, {"susan": SUSAN, "joe": JOE})) as url:
        yield url


async def runs(pool: Pool, code: str, **more: object) -> Job:
    data = code.encode()
    digest = hashlib.sha256(data).hexdigest()
    if pool.uploads.missing(SUSAN, [digest]):
        writer = pool.uploads.writer(SUSAN, digest, len(data))
        await writer.write(data)
        await writer.close()
    file = SnapshotFile("train.py", digest, len(data))
    entry = ScriptEntry("train.py")
    asked = JobSubmission(entry, name="train", files=[file], **more)  # type: ignore[arg-type]
    made = await pool.jobs.submit(SUSAN, asked)
    return await reached(pool, made.id, State.SUCCEEDED, State.FAILED)


async def test_job_is_compared_with_previous_submission(
    pool: Pool, address: str, browser: Browser
) -> None:
    first = await runs(pool, "print('lr', 0.1)\n", gpus=1)
    alone = await reader(browser, address, f"jobs/{first.id}/compare")
    await expect(alone.locator(".empty")).to_contain_text(
        "There is no other submission of train by"
    )
    second = await runs(pool, "print('lr', 0.01)\n", gpus=2)
    page = await reader(browser, address, f"jobs/{second.id}")
    await page.get_by_role("link", name="Compare with another submission").click()
    answer = page.locator(".answer")
    await expect(answer).to_have_text(
        "They were sent with different GPUs, file train.py and 2 lines of code."
    )
    heads = page.get_by_role("table").first.get_by_role("columnheader")
    await expect(heads.nth(1)).to_contain_text(first.id[:8])
    await expect(heads.nth(2)).to_contain_text(second.id[:8])
    await expect(page.locator(".difference .new")).to_have_text("+print('lr', 0.01)")
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def recorded(pool: Pool, numpy: str, seed: int) -> Job:
    """Run a job that records its environment as the runner does, and return it."""
    around = replace(RUN, packages=[Package("numpy", numpy)], seeds=[Seed(1, "seed", str(seed))])
    script = (
        "import os, pathlib\n"
        "folder = pathlib.Path(os.environ['BENCHPOOL_OUTPUT_DIR'])\n"
        f"(folder / {NAME!r}).write_bytes({msgspec.json.encode(around)!r})\n"
    )
    argv = [sys.executable, "-c", script]
    made = await pool.jobs.submit(SUSAN, JobSubmission(CommandEntry(argv), name="around"))
    return await reached(pool, made.id, State.SUCCEEDED)


async def test_environments_of_jobs_are_compared(
    pool: Pool, address: str, browser: Browser
) -> None:
    first, second = await recorded(pool, "2.0.0", 1), await recorded(pool, "2.1.0", 1)
    page = await reader(browser, address, f"jobs/{second.id}/compare")
    rows = page.get_by_role("table", name="Environment").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("package numpy")
    await expect(rows.get_by_role("cell")).to_have_text(["2.0.0", "2.1.0"])
    typed = page.get_by_text(f"benchpool changes {first.id[:8]} {second.id[:8]}")
    await expect(typed).to_be_visible()
    shot = os.environ.get("BENCHPOOL_SCREENSHOTS")
    if shot:
        await page.screenshot(path=Path(shot) / "compare-around.png", full_page=True)


async def test_repeated_job_is_compared_with_original(
    pool: Pool, address: str, browser: Browser
) -> None:
    first = await recorded(pool, "2.0.0", 7)
    await recorded(pool, "2.1.0", 8)
    page = await reader(browser, address, f"jobs/{first.id}")
    await page.get_by_role("button", name="Run again as it was around").click()
    await page.wait_for_url("**did=again**")
    notice = "around was sent again as it was. This is the new job."
    await expect(page.locator("#flash")).to_contain_text(notice)
    again = page.url.partition("jobs/")[2][:26]
    assert again != first.id
    await reached(pool, again, State.SUCCEEDED)
    await page.goto(f"{address}jobs/{again}/compare")
    await expect(page.locator(".answer")).to_contain_text("the same options")
    await expect(page.get_by_text("The same Python, packages, driver")).to_be_visible()
    heads = page.get_by_role("table").first.get_by_role("columnheader")
    await expect(heads.nth(1)).to_contain_text(first.id[:8])


async def reader(browser: Browser, address: str, path: str) -> Page:
    context = await browser.new_context()
    await context.add_cookies([{"name": "reader", "value": "susan", "url": address}])
    page = await context.new_page()
    await page.goto(address + path)
    return page


async def test_comparison_with_invisible_job_is_rejected(pool: Pool, address: str) -> None:
    theirs = await runs(pool, "print(1)\n")
    own = await pool.jobs.submit(JOE, JobSubmission(CommandEntry(["true"]), name="mine"))
    async with httpx.AsyncClient(base_url=address, trust_env=False) as http:
        asked = {"headers": {"Cookie": "reader=joe"}, "params": {"with": theirs.id}}
        answer = await http.get(f"jobs/{own.id}/compare", **asked)  # type: ignore[arg-type]
        assert answer.status_code == 404
        assert "train" not in answer.text
