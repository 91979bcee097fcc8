"""The page of a queued start in a real browser: the position and the alternative."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from benchpool_support.browser import chromium
from benchpool_support.kube_hub import KubeHub

pytestmark = [pytest.mark.kubernetes, pytest.mark.e2e]


async def log_in(page: Page, hub: KubeHub, user: str) -> None:
    """Log a user in through the Hub's form."""
    await page.goto(f"{hub.url}/hub/login?next=%2Fhub%2Fhome")
    await page.fill("#username_input", user)
    await page.fill("#password_input", "any")
    await page.click("#login_submit")
    await page.wait_for_url(re.compile(r"/hub/home"))


@pytest.mark.usefixtures("full")
async def test_waiting_page_shows_position_and_offers_start_without_gpu(
    hub: KubeHub, scheduler: Any
) -> None:
    async with chromium() as browser:
        page = await browser.new_page()
        await log_in(page, hub, "uma")
        await page.goto(f"{hub.url}/hub/spawn/uma")
        await page.check("#benchpool-gpus-2")
        await page.click("#spawn_form [type=submit]")
        message = page.locator("#progress-message")
        await expect(message).to_contain_text("You are next: 2 GPUs are not free")
        await expect(page.locator("#stop-server-btn")).to_have_count(1)
        await page.click("#benchpool-without-gpu")
        await asyncio.to_thread(hub.wait_ready, "uma")
        assert scheduler.leases("uma") == []
        await page.wait_for_url(re.compile(r"/user/uma/"), timeout=120_000)
    await asyncio.to_thread(hub.stop_server, "uma")
