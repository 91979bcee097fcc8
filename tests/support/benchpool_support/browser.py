"""A real Chromium for tests: how it is started, and what a page did."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@dataclass
class Seen:
    """A page with what it asked for, what its policy stopped, and what failed in it."""

    page: Page
    url: str
    violations: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Take notes from now on."""
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._line)

    def _line(self, line: ConsoleMessage) -> None:
        if about_policy(line.text):
            self.violations.append(line.text)


def about_policy(text: str) -> bool:
    """Tell whether a console line is about the content security policy."""
    return any(word in text for word in ("Content Security Policy", "Trusted", "Refused to"))


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run a headless browser that talks to nobody but the pages it opens."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            await browser.close()
