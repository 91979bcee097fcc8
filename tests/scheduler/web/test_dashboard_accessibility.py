"""Accessibility of the dashboard: phones, dark mode, screen readers and reduced motion."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, timedelta
from pathlib import Path

import pytest
from playwright.async_api import expect

from benchpool_scheduler import phrases
from benchpool_support.browser import Seen
from benchpool_support.full_stage import MINE, WAITS
from benchpool_support.keys import focused

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.slow,
    pytest.mark.usefixtures("full_stage"),
]

Visit = Callable[..., Awaitable[Seen]]
PAGES = ["", f"jobs/{MINE.id}", f"jobs/{WAITS.id}", "jobs/nonesuch"]


@pytest.mark.parametrize("width", [375, 320, 640])
async def test_pages_do_not_scroll_sideways_at_narrow_widths(visit: Visit, width: int) -> None:
    for path in PAGES:
        page = (await visit("ada", path, width=width)).page
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, path
        for sheet in await page.locator("summary.button").all():
            await sheet.click()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await page.context.close()


CONTRAST = Path(__file__).with_name("contrast.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_contrast_is_sufficient_in_light_and_dark(visit: Visit, scheme: str) -> None:
    for path in PAGES:
        page = (await visit("ada", path, color_scheme=scheme)).page
        for sheet in await page.locator("summary").all():
            await sheet.evaluate("summary => { summary.parentElement.open = true; }")
        weak, ground = await page.evaluate(CONTRAST)
        assert weak == [], path
        assert (ground < 0.1) == (scheme == "dark")
        await page.context.close()


async def test_screen_reader_finds_regions_tables_and_named_squares(visit: Visit) -> None:
    page = (await visit("ada")).page
    for name in ("GPU pool", "Queue", "Running", "Paused", "Benches", "Projects"):
        await expect(page.get_by_role("region", name=re.compile(f"^{name}"))).to_have_count(1)
    square = page.get_by_role("link", name="GPU 0 · A100 · train, over quota · susan: resnet")
    await expect(square).to_have_attribute("href", re.compile(MINE.id))
    queue = page.get_by_role("table", name=re.compile("^Queue"))
    snapshot = await queue.aria_snapshot()
    assert 'columnheader "State and reason"' in snapshot
    assert "queued Waits for 2 GPUs: 1 of 9 is free." in snapshot
    bar = page.get_by_role("img", name="4 GPUs allocated, 2 of them over quota")
    await expect(bar).to_have_count(1)
    unnamed = await page.evaluate(
        """() => [...document.querySelectorAll('a, button, summary, input:not([type=hidden])')]
            .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim()
                             || one.labels?.length)).length"""
    )
    assert unnamed == 0


async def test_tables_keep_their_roles_on_phone(visit: Visit) -> None:
    page = (await visit("susan", width=375)).page
    snapshot = await page.get_by_role("table", name=re.compile("^Queue")).aria_snapshot()
    assert 'columnheader "State and reason"' in snapshot
    assert "row " in snapshot


async def test_squares_are_navigated_by_arrow_keys_with_tooltip(visit: Visit) -> None:
    page = (await visit("ada")).page
    first = page.locator(".squares a").first
    await first.focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    assert await focused(page) == "GPU 2 · A100 · bench, held · joe: server “paper”"
    tip = page.locator(".squares a:focus .tip")
    await expect(tip).to_be_visible()
    await expect(tip).to_contain_text("joe: server “paper”")
    assert await page.locator(".squares a[tabindex='0']").count() == 1


async def test_times_are_exact_on_hover_in_reader_time_zone(visit: Visit) -> None:
    page = (await visit("susan", f"jobs/{MINE.id}", timezone_id="Asia/Tokyo", locale="en-GB")).page
    time = page.locator("dl time").first
    await expect(time).to_have_attribute("datetime", re.compile(r"Z$"))
    at = MINE.submitted.astimezone(UTC) + timedelta(hours=9)
    await expect(time).to_have_attribute("title", re.compile(f"{at:%H:%M:%S}"))


async def test_scripts_and_server_format_relative_times_equally(visit: Visit) -> None:
    page = (await visit("susan")).page
    seconds = [0, 4, 5, 59, 60, 3599, 3600, 3660, 86399, 86400, 10**7, -5, -61, -90000]
    shown = await page.evaluate(
        """async (seconds) => {
            const { relative } = await import("/services/benchpool/static/times.js");
            return seconds.map(one => relative(0, one * 1000));
        }""",
        seconds,
    )
    assert shown == [phrases.ago(one) for one in seconds]


async def test_reduced_motion_disables_animations(visit: Visit) -> None:
    page = (await visit("susan", reduced_motion="reduce")).page
    moving = await page.evaluate(
        """() => [...document.querySelectorAll('*')].map(one => getComputedStyle(one))
            .filter(style => style.transitionDuration !== '0s' || style.animationName !== 'none'
                             || style.scrollBehavior === 'smooth').length"""
    )
    assert moving == 0


async def test_pages_request_only_their_own_service(visit: Visit) -> None:
    for path in PAGES:
        seen = await visit("ada", path)
        await seen.page.wait_for_timeout(100)
        assert all(one.startswith(seen.url) for one in seen.requests)
        assert seen.violations == seen.faults == []
