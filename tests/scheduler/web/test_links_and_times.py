"""Copyable links of page elements, and times in the time zone of the reader."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from benchpool_scheduler.contract import GpuState
from benchpool_support.browser import Seen
from benchpool_support.full_stage import MINE, WAITS
from benchpool_support.stage import StagedPool, gpu, reason

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.slow,
    pytest.mark.usefixtures("full_stage"),
]

Visit = Callable[..., Awaitable[Seen]]
CLIPBOARD = ["clipboard-read", "clipboard-write"]


async def copied(page: Page, what: str) -> str:
    await page.get_by_role("button", name=f"Copy link to {what}", exact=True).click()
    await expect(page.locator("#speech")).to_have_text("Link copied.")
    return str(await page.evaluate("navigator.clipboard.readText()"))


@pytest.mark.parametrize(
    ("at", "what", "opens"),
    [
        ("", "node lab1", "#node-lab1:target"),
        ("", "project susan", "#project-susan:target"),
        (f"jobs/{MINE.id}", "job resnet", "h1 bdi:text-is('resnet')"),
        (f"jobs/{MINE.id}", "attempt 1", "nav a[aria-current]:text-is('attempt 1')"),
        (f"jobs/{MINE.id}?line=7", "line 7", "#L7.wanted:target"),
    ],
)
async def test_copied_link_opens_at_its_target(
    visit: Visit, at: str, what: str, opens: str
) -> None:
    seen = await visit("susan", at, permissions=CLIPBOARD)
    address = await copied(seen.page, what)
    assert address.startswith(seen.url)
    other = (await visit("susan")).page
    await other.goto(address)
    await expect(other.locator(opens)).to_be_visible()
    assert seen.faults == seen.violations == []


async def test_link_is_copied_without_clipboard_api(visit: Visit) -> None:
    page = (await visit("susan", f"jobs/{MINE.id}")).page
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button = page.get_by_role("button", name="Copy link to job resnet")
    await button.click()
    await expect(page.locator("#speech")).to_have_text("Link copied.")
    await expect(button).to_be_focused()
    await page.evaluate("document.body.append(document.createElement('textarea'))")
    await page.locator("body > textarea").press("Control+v")
    await expect(page.locator("body > textarea")).to_have_value(re.compile(f"/jobs/{MINE.id}$"))


async def test_copy_buttons_are_hidden_without_scripts(visit: Visit) -> None:
    page = (await visit("susan", java_script_enabled=False)).page
    await expect(page.locator("button[data-copy]").first).to_be_hidden()


async def test_times_in_sentences_use_reader_time_zone(visit: Visit, staged: StagedPool) -> None:
    closed = "is in maintenance until 2026-11-28 23:30 UTC (new disks)"
    staged.gpus.append(gpu(9, GpuState.CLOSED, node="lab2", note=closed))
    await staged.becomes(WAITS.id, reason=reason(f"No node is open: lab2 {closed}."))
    tokyo = {"timezone_id": "Asia/Tokyo", "locale": "en-GB"}
    page = (await visit("susan", **tokyo)).page
    expected = re.compile(r"until 29 Nov 2026, 08:30 (GMT\+9|JST) \(new disks\)")
    await expect(page.locator("#queue .reason").filter(has_text="lab2")).to_have_text(expected)
    page = (await visit("susan", java_script_enabled=False, **tokyo)).page
    reasons = page.locator("#queue .reason").filter(has_text="lab2")
    await expect(reasons).to_contain_text("until 2026-11-28 23:30 UTC (new disks)")


@pytest.mark.parametrize("path", ["jobs", "", f"jobs/{MINE.id}"])
async def test_page_times_are_exact_in_reader_time_zone(visit: Visit, path: str) -> None:
    page = (await visit("susan", path, timezone_id="Asia/Tokyo", locale="en-GB")).page
    times = page.locator("time")
    await expect(times.first).to_have_attribute("title", re.compile(r"GMT\+9|JST"))
    titles = await times.evaluate_all("all => all.map(one => one.title)")
    assert all(re.search(r"GMT\+9|JST", title) for title in titles)
