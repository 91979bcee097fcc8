"""Parked benches on pages: their owner and administrators see the state of each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from benchpool_scheduler.contract import ParkStep
from benchpool_support.bench_lines import line
from benchpool_support.browser import chromium, opened_by
from benchpool_support.parking_pool import ParkingPool, parking_pool, stands
from benchpool_support.pools import ADMIN, HUB, JOE, SUSAN, sleeper
from benchpool_support.scripted_cuda import GPU, ScriptedMachine
from benchpool_support.stage import application, served

pytestmark = pytest.mark.slow

READERS = {"susan": SUSAN, "joe": JOE, "ada": ADMIN}
CONTRAST = (Path(__file__).parents[1] / "web" / "contrast.js").read_text()


@pytest.fixture
def stage(
    tmp_path: Path, machine: ScriptedMachine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ParkingPool]:
    with parking_pool(tmp_path, machine, monkeypatch) as stage:
        yield stage


async def test_owner_and_administrators_see_parked_bench_and_return(
    stage: ParkingPool,
) -> None:
    async with stage.pool() as pool, chromium() as browser:
        with served(lambda: application(pool, READERS)) as url:
            page = await opened_by(browser, url, "mine", "susan")
            await expect(page.locator("#parked")).to_have_count(0)
            lease = await stage.parked(pool)
            for scheme in ("light", "dark"):
                page = await opened_by(browser, url, "mine", "susan", 390, color_scheme=scheme)
                mine = page.locator("#parked")
                await expect(mine).to_contain_text("is parked")
                await expect(mine).to_contain_text("Its GPU is lent, and its kernel waits in")
                await expect(mine.locator("code")).to_have_text(f"benchpool unpark {lease}")
                assert await page.evaluate("document.documentElement.scrollWidth") <= 390
                weak, _ = await page.evaluate(CONTRAST)
                assert weak == []
            await expect(page.locator("#quota")).to_contain_text(
                "0 of 1 GPUs held, 1 lent while parked, 0 free of your quota"
            )
            for _ in range(2):
                await pool.jobs.submit(JOE, sleeper())
            await stage.runtime.until_launched(2)
            await pool.reservations.parking.unpark(SUSAN, lease)
            await stage.runtime.until_noticed(1)
            await page.reload()
            await expect(mine).to_contain_text("is returning")
            await expect(mine).to_contain_text("Your GPU comes back: the training job on it")
            await expect(mine.locator("code")).to_have_count(0)
            fleet = await opened_by(browser, url, "fleet", "ada")
            seen = fleet.locator("#parked")
            # Without measurements no share of the time is shown.
            await expect(fleet.locator("#today")).to_contain_text(
                "The activity of held GPUs was not measured."
            )
            await expect(seen).to_contain_text(re.compile("susan .* is returning"))
            await expect(seen).to_contain_text("Its GPU comes back: the training job on it")
            if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
                await fleet.screenshot(path=Path(folder) / "fleet-parked.png", full_page=True)
                await page.screenshot(path=Path(folder) / "mine-parked.png", full_page=True)
            other = await opened_by(browser, url, "fleet", "joe")
            await expect(other.locator("#hour")).to_be_visible()
            assert "susan" not in await other.content()
            worker, _ = stage.runtime.notices[0]  # resent after its grace period
            stage.runtime.end(worker, 143)
            await stands(pool, lease, None)
            await page.reload()
            await expect(page.locator("#quota")).to_contain_text("1 of 1 GPUs held, 0 free")
            await expect(page.locator("#parked")).to_have_count(0)


async def test_parked_bench_gpu_stays_used_in_quota(stage: ParkingPool) -> None:
    async with stage.pool() as pool:
        lease = (await pool.benches.reserve(HUB, line().lease)).id
        held = pool.views.quota(SUSAN).build
        assert (len(held.held), held.lent, held.free) == (1, 0, 0)
        await pool.reservations.parking.park(SUSAN, lease)
        await stands(pool, lease, ParkStep.PARKED)
        parked = pool.views.quota(SUSAN).build
        assert (parked.held, parked.lent, parked.free) == ([], 1, 0)
        assert GPU not in pool.ledger.leased
