"""Metric curves on the page of a job and across jobs: in a browser, live, and as text."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from benchpool_scheduler.contract import Curve, JobMetrics, MetricsQuery, State
from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import Lines, MetricReport, remade
from benchpool_scheduler.curves.views import answer
from benchpool_scheduler.web.curve_view import LabelledCurves, pictures
from benchpool_support.browser import Seen
from benchpool_support.stage import NOW, StagedPool, job
from benchpool_support.staged_curves import drawn_lines

Visit = Callable[..., Awaitable[Seen]]
browsed = pytest.mark.asyncio(loop_scope="module")

GOOD = job(
    "resnet",
    State.RUNNING,
    attempt=2,
    tags=("lr-sweep", "<b>try</b>"),
    note="warm-up <i>helps</i>",
    metrics_updated=NOW,
)
OTHER = job("resnet-lr2", State.SUCCEEDED, tags=("lr-sweep",))
SILENT = job("silent", State.RUNNING)


@pytest.fixture
def measured(staged: StagedPool) -> StagedPool:
    """Return a staged pool with two jobs that report metrics and one without."""
    staged.add(GOOD, OTHER, SILENT)
    staged.lines = {GOOD.id: drawn_lines(), OTHER.id: drawn_lines(0.7)}
    return staged


async def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@browsed
async def test_job_page_draws_reported_metrics_live(visit: Visit, measured: StagedPool) -> None:
    seen = await visit("susan", f"jobs/{GOOD.id}")
    part = seen.page.get_by_role("region", name="Curves")
    picture = part.get_by_role("img", name="train/loss over steps")
    await expect(picture.locator("polyline")).to_have_count(1)
    await expect(part).to_have_attribute("data-live-curves", "")
    await expect(picture.locator(".pausemark title")).to_have_text("attempt 2 from step 100")
    await expect(part.get_by_role("img", name="grad_norm over steps")).to_contain_text("×")
    await expect(part).to_contain_text("at step 199, over 1 pause; least")
    await part.get_by_text("As a table").first.click()
    rows = part.get_by_role("table", name="train/loss").get_by_role("row")
    await expect(rows.last).to_contain_text("199")
    await shot(seen.page, "curves-of-a-job")
    measured.lines[GOOD.id] = drawn_lines(1.0, 300)
    await measured.becomes(GOOD.id, metrics={"train/loss": 0.1})
    await expect(part).to_contain_text("at step 299, over 1 pause; least")


@browsed
async def test_job_without_metrics_has_no_curves(visit: Visit, measured: StagedPool) -> None:
    seen = await visit("susan", f"jobs/{SILENT.id}")
    await expect(seen.page.locator("h1")).to_have_text("silent")
    assert "Curves" not in await seen.page.locator("main").inner_text()
    seen = await visit("susan", f"compare?job={SILENT.id}")
    await expect(seen.page.locator("main")).to_contain_text(
        "None of these jobs has reported a number"
    )


@browsed
@pytest.mark.parametrize("width", [1280, 390])
async def test_curves_of_jobs_are_overlaid_with_best_marked(
    visit: Visit, measured: StagedPool, width: int
) -> None:
    seen = await visit("susan", f"compare?job={GOOD.id}&job={OTHER.id[:8]}", width=width)
    page = seen.page
    picture = page.get_by_role("img", name="train/loss over steps")
    await expect(picture.locator(".run")).to_have_count(2)
    legend = page.get_by_role("list", name="Lines")
    await expect(legend).to_contain_text(f"{OTHER.id[:8]} resnet-lr2")
    table = page.get_by_role("table", name="Parameters and metrics")
    best = table.get_by_role("row").filter(has_text="resnet-lr2").locator("strong")
    await expect(best).to_have_count(2)
    cells = table.get_by_role("row").filter(has_text=f"{GOOD.id[:8]} resnet").get_by_role("cell")
    await expect(cells.nth(1)).to_have_text("lr-sweep <b>try</b>")
    await expect(cells.nth(2)).to_have_text("warm-up <i>helps</i>")
    without = table.get_by_role("row").filter(has_text="resnet-lr2").get_by_role("cell")
    await expect(without.nth(2)).to_have_text("–")
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await shot(page, f"compared-{width}")
    await page.locator('select[data-metric="train/loss"]').select_option("train/loss:max")
    await page.get_by_role("button", name="Compare").click()
    of_good = table.get_by_role("row").filter(has_text=f"{GOOD.id[:8]} resnet").first
    await expect(of_good.locator("strong").first).to_contain_text("2")


@browsed
async def test_jobs_of_tag_are_compared(visit: Visit, measured: StagedPool) -> None:
    seen = await visit("susan", "jobs?tag=lr-sweep")
    await seen.page.get_by_role("link", name="Compare their metrics").click()
    await expect(seen.page.locator("h1")).to_contain_text("tagged lr-sweep")
    await expect(seen.page.get_by_role("list", name="Lines").get_by_role("listitem")).to_have_count(
        2
    )


@browsed
async def test_comparison_with_foreign_job_is_not_found(visit: Visit, measured: StagedPool) -> None:
    seen = await visit("joe", f"compare?job={GOOD.id}")
    await expect(seen.page.locator("h1")).to_have_text("Page not found")


def metrics(lines: Lines) -> JobMetrics:
    return answer("abcd", "train", lines, MetricsQuery())


def curves(*values: float | None) -> list[Curve]:
    reported = tuple(("loss", Reported(value, at, at)) for at, value in enumerate(values))
    return metrics(remade([MetricReport(1, reported)])).curves


def test_curve_has_gap_at_missing_number() -> None:
    (one,) = pictures([LabelledCurves("a", curves(3.0, 2.0, None, 1.0, None))])
    (line,) = one.lines
    assert (len(line.stretches), len(line.dots), len(line.broken)) == (1, 1, 2)
    assert one.words.endswith("greatest 3 at step 0. No number after that.")


def test_single_or_missing_values_are_drawn() -> None:
    (one,) = pictures([LabelledCurves("a", curves(3.0))])
    assert one.lines[0].dots
    (one,) = pictures([LabelledCurves("a", curves(None, None))])
    assert one.words == "no value of it is a number."
    equal = pictures([LabelledCurves("a", curves(2.0, 2.0))])[0]
    assert [level.text for level in equal.levels]


def test_job_without_metric_has_no_curve() -> None:
    shown = [LabelledCurves("a", curves(1.0, 2.0)), LabelledCurves("b", [])]
    (one,) = pictures(shown)
    assert [line.label for line in one.lines] == ["a"]
