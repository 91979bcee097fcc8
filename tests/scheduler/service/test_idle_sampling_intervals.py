"""Idle time is counted alike at every sampling interval that a site can set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchStep
from benchpool_scheduler.service.benches.idle.sights import PENDING_S, BenchSights
from benchpool_scheduler.service.benches.idle.verbs import LOOK_S
from benchpool_scheduler.telemetry import GpuSample
from benchpool_support.idle_site import IdleSite, running

INTERVALS = (1, 10, 45, 60, 120)
"""Sampling intervals, in seconds. Sites set 1 to 60; Prometheus may scrape less often."""


async def look_on(
    site: IdleSite,
    seconds: int,
    interval: int,
    activity: Callable[[int], float] = lambda number: 0.0,
) -> float:
    """Let time pass with samples, reports and looks; return the seconds until the bench is due.

    Args:
        activity: Returns the activity of a sample by its number.
    """
    due_s = float("inf")
    for second in range(1, seconds + 1):
        site.clock.pass_s(1)
        if second % interval == interval // 2:
            site.measure(activity(second // interval), interval)
        if second % 20 == 5:
            site.report()
        if second % LOOK_S == 0:
            await site.pool.idle.look()
            if site.now().step is BenchStep.DUE:
                due_s = min(due_s, second)
    return due_s


@pytest.mark.parametrize("interval", INTERVALS)
async def test_idle_bench_is_due_after_its_time(tmp_path: Path, interval: int) -> None:
    async with running(tmp_path) as site:
        due_s = await look_on(site, 4200, interval)
        assert 3600 <= due_s <= 3600 + 2 * interval + 2 * LOOK_S
        assert site.now().coverage > 0.95


@pytest.mark.parametrize("interval", [10, 60])
async def test_use_in_last_sample_ends_idle_time(tmp_path: Path, interval: int) -> None:
    async with running(tmp_path) as site:
        last = 3500 // interval
        await look_on(site, 3500, interval, lambda number: 0.9 if number == last - 1 else 0.0)
        assert site.now().idle_s < 4 * interval + 2 * LOOK_S


def test_long_sample_covers_no_later_time() -> None:
    sights, counted_s = BenchSights(["gpu"]), 0.0
    report = BenchActivity(kernels=1, busy_kernels=0, executions=0, terminal_programs=0)
    # A machine that was suspended reports one long span. Later samples cover half of the time.
    spans = [60.0, 60.0, 600.0, *[30.0] * 10]
    for number, span_s in enumerate(spans):
        at = 60.0 * number
        sights.measured(GpuSample(at, span_s, "gpu", activity=0.0))
        sights.reported(report, at)
        seen = sights.taken(at, at - 60.0, spared=False)
        assert seen is not None
        counted_s += seen.measured_s if span_s < 60 else 0.0
    assert counted_s <= 300 + PENDING_S
