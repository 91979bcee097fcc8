"""GPU time by the hour: past hours are computed once, and again after a pause reports its loss."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval, Loss
from benchpool_scheduler.accounting.recorded import RecordedUse
from benchpool_scheduler.contract.use import UseClass
from benchpool_scheduler.service.administration.fleet import WEEK_HOURS
from benchpool_scheduler.service.administration.hourly_use import ByProject, HourlyUse
from benchpool_scheduler.service.pool import use_history
from benchpool_support.pools import make_pool, opened

HOUR = 3600.0
NOW = 100 * HOUR + 900
SUSAN = GpuHolder(GpuUseKind.TRAINING, "susan", "vision", "j", 1)


class Reader:
    """Reader of a GPU held by one job since time 0; ``asked`` lists the ranges read, in hours."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, float]] = []
        self.known: list[Loss] = []

    async def read(self, begin: float, end: float, *, step_s: float) -> RecordedUse:
        self.asked.append((begin / HOUR, end / HOUR))
        history = [GpuInterval("g", "n", "H200", 0.0, end, SUSAN)]
        return RecordedUse(begin, end, history, (), self.known)

    def losses(self, begin: float) -> Sequence[Loss]:
        return self.known


async def lost_h(hourly: HourlyUse, number: int, now: float) -> float:
    hours = await hourly.hours(number, now)
    return sum(of["vision"].seconds.get(UseClass.LOST, 0.0) for _, of in hours) / HOUR


async def test_hourly_use_adds_up_and_reads_only_new_ranges() -> None:
    reader = Reader()
    hourly = HourlyUse(reader)
    hours = await hourly.hours(30, NOW)
    assert [at / HOUR for at, _ in hours] == list(range(70, 101))
    assert sum(of["vision"].gpu_s for _, of in hours) == 30 * HOUR + 900
    assert sorted(reader.asked) == [(70, 77), (77, NOW / HOUR)]
    reader.asked.clear()
    await hourly.hours(30, NOW + 300)
    assert reader.asked == [(100, (NOW + 300) / HOUR)]
    reader.asked.clear()
    await hourly.hours(30, NOW + HOUR)
    assert reader.asked == [(100, (NOW + HOUR) / HOUR)]


async def test_late_loss_updates_cached_hours() -> None:
    reader = Reader()
    hourly = HourlyUse(reader)
    assert await lost_h(hourly, 24, NOW) == 0
    reader.known.append(Loss("j", 1, 97.5 * HOUR, 99.25 * HOUR))
    assert await lost_h(hourly, 24, NOW) == 1.75


@pytest.mark.slow
async def test_hourly_use_of_week_is_cached_after_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    divide, divided = HourlyUse.hours, asyncio.Event()

    async def hours(self: HourlyUse, number: int, now: float) -> Sequence[tuple[float, ByProject]]:
        found = await divide(self, number, now)
        if number == WEEK_HOURS:
            divided.set()
        return found

    monkeypatch.setattr(HourlyUse, "hours", hours)
    monkeypatch.setattr(use_history, "AFTER_START_S", 0.0)
    async with opened(make_pool(tmp_path, gpus=8)), asyncio.timeout(120):
        await divided.wait()
