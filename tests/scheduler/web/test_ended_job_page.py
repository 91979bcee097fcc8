"""The page of an ended job shows its use of resources and advice for the next submission."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import expect

from benchpool_scheduler.contract import JobUsage, State, UsageFigure
from benchpool_support.browser import Seen
from benchpool_support.stage import StagedPool, job

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDED = job("train", State.SUCCEEDED)
NOTE = JobUsage(
    job=ENDED.id,
    figures=[
        UsageFigure("GPU busy", "12 %"),
        UsageFigure("GPU memory", "41.0 GiB of 80"),
        UsageFigure("CPUs", "1.0 of 1"),
    ],
    text="Its GPU was busy 12 % of the time, and 1.0 of 1 CPU in use.",
    change="Request more CPUs, and give the data loader one process for each.",
    option="--cpus 2",
    rule="cpus-full",
)


async def test_usage_note_shows_figures_text_and_option(
    visit: Callable[..., Awaitable[Seen]], staged: StagedPool
) -> None:
    staged.add(ENDED)
    seen = await visit("susan", f"jobs/{ENDED.id}")
    await expect(seen.page.locator("h1")).to_have_text("train")
    assert "Resource use" not in await seen.page.content()
    staged.usages[ENDED.id] = NOTE
    for width in (1280, 390):
        seen = await visit("susan", f"jobs/{ENDED.id}", width=width)
        part = seen.page.get_by_role("region", name="Resource use")
        for figure in NOTE.figures:
            await expect(part).to_contain_text(figure.text)
        await expect(part).to_contain_text(f"{NOTE.text} Next time: {NOTE.change} Send with")
        await expect(part.locator("code")).to_have_text("--cpus 2")
        assert await seen.page.evaluate("document.documentElement.scrollWidth") <= width
        if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
            await seen.page.screenshot(path=Path(folder) / f"note-{width}.png")
