"""The page *Notifications* in a real browser: addresses, tests and selected events."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract.audit import AuditQuery
from benchpool_scheduler.service import Pool
from benchpool_support.browser import opened_by
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened
from benchpool_support.stage import application, served
from benchpool_support.webhooks import Receiver, receiving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

SECRET = "a secret that nobody reads"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    site = {"kinds": ["https", "slack"], "hosts": ["127.0.0.1"]}
    (tmp_path / "notifications.yaml").write_text(json.dumps(site))
    async with opened(make_pool(tmp_path)) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool) -> AsyncIterator[str]:
    with served(lambda: application(pool, {"susan": SUSAN, "ada": ADMIN})) as url:
        yield url


async def test_notification_address_is_added_tested_and_removed(
    pool: Pool, address: str, browser: Browser, receiver: Receiver
) -> None:
    page = await opened_by(browser, address, "", "susan", width=390)
    await page.get_by_role("link", name="Notifications").click()
    await expect(page.get_by_text("No address yet")).to_be_visible()
    await page.get_by_label("Address:").fill("http://10.0.0.1/hook")
    await page.get_by_role("button", name="Add address").click()
    await expect(page.get_by_role("alert")).to_contain_text("and port 443")
    await page.get_by_label("Address:").fill(receiver.url)
    await page.get_by_label("Secret of a webhook").fill(SECRET)
    await page.get_by_role("button", name="Add address").click()
    row = page.get_by_role("row").filter(has_text="http://127.0.0.1/…")
    await expect(row).to_contain_text("none yet")
    assert SECRET not in await page.content()
    assert receiver.url not in await page.content()
    await page.get_by_role("button", name="Send a test").click()
    await expect(row).to_contain_text("arrived")
    assert receiver.came[0].texts == ["This is a test: benchpool notifies susan at this address."]
    trail = str(await pool.audit.read(ADMIN, AuditQuery()))
    assert "change_notifications" in trail
    assert SECRET not in trail
    assert receiver.url not in trail
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
        await page.screenshot(path=Path(folder) / "notifications.png", full_page=True)
    await page.get_by_role("button", name="Remove http://127.0.0.1/…").click()
    await expect(page.get_by_text("No address yet")).to_be_visible()


async def test_notification_events_are_selected_and_saved(
    pool: Pool, address: str, browser: Browser
) -> None:
    page = await opened_by(browser, address, "notifications", "susan")
    await expect(page.get_by_label("A GPU is broken")).to_have_count(0)
    await page.get_by_label("A job succeeded").uncheck()
    await page.get_by_label("A pause is long after").fill("2h")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").filter(has_text="From now on")).to_be_visible()
    await expect(page.get_by_label("A job succeeded")).not_to_be_checked()
    kept = pool.notifier.settings(SUSAN)
    assert kept.paused_s == 7200
    assert [one.value for one in kept.events] == [
        *("started", "failed", "paused", "hanging", "deadline", "schedule", "idle-bench", "budget")
    ]
    await page.get_by_label("A pause is long after").fill("soon")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("A long pause is 'soon'")


async def test_form_with_wrong_token_is_rejected(
    pool: Pool, address: str, browser: Browser
) -> None:
    page = await opened_by(browser, address, "notifications", "ada")
    await page.evaluate("for (const one of document.getElementsByName('_xsrf')) one.value = 'x'")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("open it again")).to_be_visible()
