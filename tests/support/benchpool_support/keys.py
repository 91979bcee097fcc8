"""Keyboard navigation of a page, and the positions of its boxes."""

from __future__ import annotations

from playwright.async_api import Page


async def focused(page: Page) -> str:
    name = await page.evaluate(
        "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    )
    return str(name).strip()


async def tab_to(page: Page, name: str) -> None:
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await focused(page) == name:
            return
    raise AssertionError(f"no way by keyboard to {name}")


async def hangs_out(page: Page, chosen: str) -> float:
    """Return how far an element reaches beyond the window, in pixels."""
    box, size = await page.locator(chosen).bounding_box(), page.viewport_size
    assert box is not None
    assert size is not None
    return max(0.0, -box["x"], box["x"] + box["width"] - size["width"])
