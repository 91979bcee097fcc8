"""A real Chromium for tests: how it starts, and a record of the events of a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from playwright import async_api, sync_api
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

PROGRAMS = ("chromium-headless-shell", "chromium")
"""Browser programs by preference.

The first takes less than half of the processor time, because it draws no window.
"""

_FOUND = [path for path in map(shutil.which, PROGRAMS) if path is not None]
CHROMIUM = os.environ.get("CHROMIUM") or (_FOUND or ["/usr/bin/chromium"])[0]
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

PATIENCE_MS = 120_000
"""Timeout for content to appear on a screen, in milliseconds; long enough for a busy machine."""

async_api.expect.set_options(timeout=PATIENCE_MS)
sync_api.expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Seen:
    """Page with its requests, the violations of its content security policy and its errors."""

    page: Page
    url: str
    violations: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Start to record."""
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._line)

    def _line(self, line: ConsoleMessage) -> None:
        if about_policy(line.text):
            self.violations.append(line.text)


def about_policy(text: str) -> bool:
    """Return whether a console line is about the content security policy."""
    return any(word in text for word in ("Content Security Policy", "Trusted", "Refused to"))


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run a headless browser that connects only to the pages it opens."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            await browser.close()


async def opened_by(
    browser: Browser, address: str, path: str, reader: str = "ada", width: int = 1440, **more: str
) -> Page:
    """Open a page of the stage as a user, in a browser context of its own.

    Args:
        more: Further options of the context, such as ``color_scheme`` and ``timezone_id``.
    """
    context = await browser.new_context(viewport={"width": width, "height": 900}, **more)  # type: ignore[arg-type]
    await context.add_cookies([{"name": "reader", "value": reader, "url": address}])
    page = await context.new_page()
    await page.goto(address + path)
    return page
