"""The runner sends each time once over changes of the clock, outages, restarts and kills."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from benchpool_support.schedule_years import (
    DAY_S,
    HOUR_S,
    Outage,
    ScheduleCounts,
    ScheduleYears,
    changes,
    seconds,
)

ZONES = ("Europe/Berlin", "America/Havana", "Antarctica/Troll", "Australia/Lord_Howe")
"""Zones whose clocks change by 60, 60, 120 and 30 minutes, twice a year."""
CRONS = ("45 1 * * *", "30 2 * * *", "30 */2 * * *", "15 * * * *")


def night(zone: str, season: str) -> int:
    """Return the minute at which the clock of a zone changes in the spring or the autumn."""
    both = changes(ZoneInfo(zone), seconds(2026), seconds(2027))
    return both[["spring", "autumn"].index(season)]


@pytest.mark.parametrize("season", ["spring", "autumn"])
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS)
async def test_no_time_is_missed_or_doubled_when_clock_changes(
    tmp_path: Path, zone: str, season: str, cron: str
) -> None:
    change = night(zone, season)
    years = ScheduleYears(
        tmp_path, cron, zone, change - 2 * DAY_S, change + DAY_S, random.Random(season)
    )
    found = await years.run()
    assert found.due >= 2
    assert found == ScheduleCounts(due=found.due, sent=found.due)


@pytest.mark.parametrize("season", ["spring", "autumn"])
@pytest.mark.parametrize("zone", ZONES)
async def test_time_during_outage_is_sent_once_and_late(
    tmp_path: Path, zone: str, season: str
) -> None:
    change = night(zone, season)
    stopped = [Outage(change - 3 * HOUR_S, change + 4 * HOUR_S)]
    chance = random.Random(f"{zone} {season}")
    years = ScheduleYears(
        tmp_path, "0 0-3 * * *", zone, change - DAY_S, change + DAY_S, chance, stopped
    )
    found = await years.run()
    assert (found.late, found.missed, found.doubled) == (1, 0, 0)
    assert found.replaced >= 1
    assert found.due == found.sent + found.late + found.replaced


async def test_killed_service_sends_interrupted_time_once(tmp_path: Path) -> None:
    begin = seconds(2026)
    years = ScheduleYears(
        tmp_path, "*/30 * * * *", "UTC", begin, begin + 4 * DAY_S, random.Random(7), kills=0.5
    )
    found = await years.run()
    assert years.kills > 20
    assert replace(found, due=0, sent=0) == ScheduleCounts()
    assert found.sent == found.due == 4 * 48
