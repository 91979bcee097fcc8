"""Links from the page of a job to its runs in trackers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import expect

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.jobs import TrackerLink
from benchpool_support.browser import Seen
from benchpool_support.stage import StagedPool, job

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


async def test_job_page_links_to_tracker_runs(
    staged: StagedPool, visit: Callable[..., Awaitable[Seen]]
) -> None:
    url = "https://ml.example/#/experiments/1/runs/2"
    hostile = TrackerLink("x", "http://<x>/", "<x>")
    runs = [TrackerLink("mlflow", url, "MLflow on ml.example"), hostile]
    tracked = job("tracked", State.RUNNING, tracker_runs=runs)
    staged.add(tracked)
    seen = await visit("susan", f"jobs/{tracked.id}")
    links = seen.page.locator("dl.facts div", has_text="Tracker").get_by_role("link")
    await expect(links).to_have_count(2)
    await expect(links.first).to_have_attribute("href", url)
    await expect(links.first).to_have_attribute("target", "_blank")
    await expect(links.first).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert await links.all_inner_texts() == ["MLflow on ml.example", "<x>"]
