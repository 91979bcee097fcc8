"""Administrators decide on the page *Health* about workers that the database does not know."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract import AdoptionRequest, Job, State
from benchpool_scheduler.contract.audit import AuditQuery
from benchpool_scheduler.service import Pool
from benchpool_support.browser import opened_by
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CALLERS = {"susan": SUSAN, "ada": ADMIN}


@pytest_asyncio.fixture(loop_scope="module")
async def left(tmp_path: Path) -> list[Job]:
    """Return two running jobs whose database was lost."""
    before = make_pool(tmp_path)
    await before.open()
    sent = [
        await before.jobs.submit(SUSAN, sleeper(name=name, gpus=2)) for name in ("precious", "old")
    ]
    running = [await reached(before, one.id, State.RUNNING) for one in sent]
    await before.close()
    for file in (tmp_path / "scheduler").glob("pool.sqlite*"):
        file.unlink()
    return running


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path, left: list[Job]) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path)) as pool:
        yield pool
        for unknown in pool.adoption.doubts(ADMIN).unknown:
            await pool.adoption.act(ADMIN, AdoptionRequest(id=unknown.id, end=True))
        await until_all_is_known(pool)


async def until_all_is_known(pool: Pool) -> None:
    """Run housekeeping until no unknown workers are left."""
    while pool.adoption.doubts(ADMIN).unknown:
        await pool.housekeeping.look()


async def test_unknown_workers_are_adopted_or_stopped_on_page(
    browser: Browser, pool: Pool, left: list[Job]
) -> None:
    precious, _ = left
    with served(lambda: application(pool, CALLERS)) as url:
        page = await opened_by(browser, url, "health")
        section = page.locator("#unknown")
        await expect(section.locator("tbody tr")).to_have_count(2)
        row = section.locator("tr", has_text="job precious, attempt 1")
        await expect(row).to_contain_text("susan of susan")
        await expect(row).to_contain_text("2 GPUs")
        await row.get_by_role("button", name="Adopt").click()
        await expect(section.locator("tbody tr")).to_have_count(1)
        assert (await reached(pool, precious.id, State.RUNNING)).name == "precious"

        await section.get_by_label("Stop job old, attempt 1 …").click()
        await section.get_by_role("button", name="Stop for good").click()
        await section.get_by_text("Go on…").click()
        await expect(section).to_contain_text("benchpool adopt --go-on")
        await section.get_by_role("button", name="Go on now").click()
        await page.wait_for_url("**/health#unknown")
        await until_all_is_known(pool)
        await page.reload()
        await expect(section).to_have_count(0)
        assert (await pool.jobs.submit(SUSAN, sleeper())).id
        deeds = [it.action for it in (await pool.audit.read(ADMIN, AuditQuery())).records]
        assert deeds.count("adopt") == 3


async def test_unknown_workers_are_hidden_from_non_administrators(
    pool: Pool, browser: Browser
) -> None:
    with served(lambda: application(pool, CALLERS)) as url:
        page = await opened_by(browser, url, "health", "susan")
        await expect(page.locator("#unknown")).to_have_count(0)
        (first, _) = pool.adoption.doubts(ADMIN).unknown
        form: dict[str, str | float | bool] = {"_xsrf": "token-of-susan", "id": first.id}
        answer = await page.request.post(f"{url}health/end", form=form)
        assert answer.status == 403
        assert len(pool.adoption.doubts(ADMIN).unknown) == 2
