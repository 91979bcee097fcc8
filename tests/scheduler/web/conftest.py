"""Fixtures: a real Chromium over a real Tornado server with a staged pool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from benchpool_scheduler.service import Caller
from benchpool_support.browser import Seen, chromium
from benchpool_support.full_stage import fill
from benchpool_support.stage import StagedPool, application, served

PEOPLE = {
    "ada": Caller("ada", admin=True),
    "susan": Caller("susan"),
    "joe": Caller("joe"),
}


@pytest.fixture
def staged() -> StagedPool:
    """Return a staged pool that tests fill."""
    return StagedPool()


@pytest.fixture
def full_stage(staged: StagedPool) -> None:
    """Fill the staged pool with jobs and GPUs in every state."""
    fill(staged)


@pytest_asyncio.fixture(loop_scope="module")
async def site(staged: StagedPool) -> AsyncIterator[str]:
    """Yield the address of the API and dashboard over the staged pool."""
    with served(lambda: application(staged.pool(), PEOPLE)) as url:
        yield url


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Yield one browser per module; each visit has its own cookies."""
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def visit(browser: Browser, site: str) -> AsyncIterator[Callable[..., Awaitable[Seen]]]:
    """Yield a function that opens a page as a user: ``await visit("susan", "jobs/...",
    width=375)``.
    """

    async def visit(reader: str, path: str = "", *, width: int = 1280, **options: Any) -> Seen:
        context = await browser.new_context(viewport={"width": width, "height": 900}, **options)
        await context.add_cookies([{"name": "reader", "value": reader, "url": site}])
        seen = Seen(await context.new_page(), site)
        seen.watch()
        await seen.page.goto(site + path)
        return seen

    yield visit
    for context in browser.contexts:
        await context.close()
