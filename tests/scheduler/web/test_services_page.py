"""The pages of services in a real browser over a real pool."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.serving import ServiceAccess, ServiceRequest, ServiceState
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service import Pool, ServiceFlow
from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample, Holder
from benchpool_support.browser import opened_by
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened
from benchpool_support.scripted import STARTED, ScriptedRuntime, devices
from benchpool_support.services import Programs, Requests, served_by, until_service
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CALLERS = {"susan": SUSAN, "joe": JOE, "ada": ADMIN}
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
SERVED = JobSubmission(entry=CommandEntry(["serve", "--port={port}"]))
LLM = ServiceRequest("llm", SERVED, min_replicas=0, access=ServiceAccess.EVERYONE)


@pytest_asyncio.fixture(loop_scope="module")
async def requests() -> Requests:
    return Requests()


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path, requests: Requests) -> AsyncIterator[Pool]:
    made = make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)), clock=FakeClock(STARTED))
    async with opened(served_by(made, Programs(), requests)) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool) -> AsyncIterator[str]:
    with served(lambda: application(pool, CALLERS, clock=FakeClock(STARTED))) as url:
        yield url


async def test_service_shows_state_requests_and_replicas_at_any_width(
    pool: Pool, address: str, requests: Requests, browser: Browser
) -> None:
    await pool.services.serve(SUSAN, LLM)
    ready = await until_service(pool, "llm", ServiceState.READY)
    requests.now = ServiceFlow(2.5, 120.0, 480.0, 3, STARTED)
    holder = Holder(job=ready.replicas[0].job, attempt=1, worker=0, user="susan", project="susan")
    use = GpuSample(at=STARTED, span_s=5, gpu="GPU-0", activity=0.335, memory_used_gib=12.34)
    pool.metering.live.see([HeldSample(use, holder)])
    page = await opened_by(browser, address, "jobs", reader="susan")
    await page.get_by_role("link", name="Services").click()
    row = page.get_by_role("row", name="llm")
    for text in ("ready", "2.5", "120 / 480 ms"):
        await expect(row).to_contain_text(text)
    await row.get_by_role("link", name="llm", exact=True).click()
    main = page.locator("main")
    for text in (
        "Ready. 1 replica answers.",
        "http://pool.test/services/benchpool/s/llm/",
        "all logged-in users",
        "0 to 1 replica of 1 GPU, asleep after 15 min without requests",
        "3 in flight",
        "34 %, 12.3 GiB",
        "susan started it.",
    ):
        await expect(main).to_contain_text(text)
    assert (await page.evaluate(CONTRAST))[0] == []
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
        await page.screenshot(path=f"{folder}/service.png", full_page=True)
    (replica,) = ready.replicas
    link = page.get_by_role("link", name=replica.job[:8])
    await expect(link).to_have_attribute("href", f"/services/benchpool/jobs/{replica.job}")


async def test_service_is_controlled_by_keyboard(
    pool: Pool, address: str, browser: Browser
) -> None:
    await pool.services.serve(SUSAN, LLM)
    await until_service(pool, "llm", ServiceState.READY)
    page = await opened_by(browser, address, "services/llm", reader="susan")
    answer = page.locator("p.answer")
    await page.get_by_role("button", name="Sleep").press("Enter")
    await expect(answer).to_contain_text("Asleep. Asleep: susan put it to sleep.")
    await page.get_by_role("button", name="Stop").press("Enter")
    await expect(answer).to_contain_text("susan stopped it. No request wakes it.")
    await page.get_by_role("button", name="Wake").press("Enter")
    await expect(page.get_by_role("status").first).to_contain_text("The service wakes.")
    await page.locator("summary").press("Enter")
    await page.get_by_role("button", name="Remove now").press("Enter")
    await expect(page.locator("main")).to_contain_text("The service is removed.")
    with pytest.raises(NotFound):
        pool.services.show(SUSAN, "llm")


async def test_updated_page_shows_service_once(pool: Pool, address: str, browser: Browser) -> None:
    await pool.services.serve(SUSAN, LLM)
    await until_service(pool, "llm", ServiceState.READY)
    page = await opened_by(browser, address, "services/llm", reader="susan")
    await expect(page.locator("p.answer")).to_contain_text("1 replica answers.")
    await pool.services.sleep(SUSAN, "llm")
    await expect(page.locator("p.answer").last).to_contain_text("Asleep.")
    await expect(page.locator("#main > section")).to_have_count(1)
    await expect(page.locator("footer.foot")).to_have_count(1)


async def test_service_reader_sees_no_replicas_or_buttons(
    pool: Pool, address: str, browser: Browser
) -> None:
    await pool.services.serve(SUSAN, LLM)
    await until_service(pool, "llm", ServiceState.READY)
    page = await opened_by(browser, address, "services?all=1", reader="joe")
    await page.get_by_role("link", name="llm", exact=True).click()
    await expect(page.locator("p.answer")).to_contain_text("1 replica answers.")
    await expect(page.get_by_role("link", name="Open")).to_be_visible()
    assert await page.get_by_role("button").count() == 0
    await expect(page.locator("main")).not_to_contain_text("Replicas now")


async def test_administrator_stops_foreign_service_with_reason(
    pool: Pool, address: str, browser: Browser
) -> None:
    await pool.services.serve(SUSAN, LLM)
    await until_service(pool, "llm", ServiceState.READY)
    page = await opened_by(browser, address, "services/llm", reader="ada")
    await page.get_by_label("Reason, for susan to read").first.fill("the node goes away")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator("p.answer")).to_contain_text("ada stopped it: the node goes away.")
