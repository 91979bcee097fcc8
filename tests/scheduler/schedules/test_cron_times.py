"""Times of schedules around changes of the clock, against a scan of every minute."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.schedules.cron_times import folder_name, times_after, times_before
from benchpool_scheduler.schedules.decisions import MOST_KEPT, due
from benchpool_support.schedule_years import DAY_S, changes, due_times, seconds

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
)
"""Zones whose clocks change by 60, 30 and 120 minutes, at midnight and at night, or never."""


def listed(most: int) -> st.SearchStrategy[str]:
    """Return fields of cron that list at most four numbers below ``most``."""
    numbers = st.sets(st.integers(0, most - 1), min_size=1, max_size=4)
    return numbers.map(lambda found: ",".join(map(str, sorted(found))))


def stepped(*steps: int) -> st.SearchStrategy[str]:
    """Return fields of cron with every n-th number."""
    return st.sampled_from(steps).map(lambda step: f"*/{step}")


hours, minutes = listed(6) | stepped(1, 2, 3, 6), listed(60) | stepped(1, 15, 20, 25, 30)


@st.composite
def nights(draw: st.DrawFn) -> tuple[ZoneInfo, int]:
    """Draw a zone and a minute at which its clock changes, or any minute if it never does."""
    zone, year = ZoneInfo(draw(st.sampled_from(ZONES))), draw(st.integers(2024, 2034))
    found = changes(zone, seconds(year), seconds(year + 1))
    return zone, draw(st.sampled_from(found)) if found else seconds(year)


@given(nights(), hours, minutes)
def test_times_agree_in_both_directions_when_clock_changes(
    night: tuple[ZoneInfo, int], hour: str, minute: str
) -> None:
    zone, change = night
    begin, end = change - DAY_S, change + DAY_S
    cron = f"{minute} {hour} * * *"
    times = due_times(cron, zone, begin, end)
    assert times_after(cron, zone.key, begin, len(times)) == times
    assert times_before(cron, zone.key, end, len(times)) == times[::-1]


@given(
    nights(),
    hours,
    minutes,
    st.lists(st.integers(-DAY_S, DAY_S), max_size=40),
)
def test_each_time_is_due_once_when_clock_changes(
    night: tuple[ZoneInfo, int], hour: str, minute: str, looks: list[int]
) -> None:
    """Look at random times, often late, and check the times found by each look."""
    zone, change = night
    cron, seen = f"{minute} {hour} * * *", float(change - DAY_S)
    times = due_times(cron, zone, change - DAY_S, change + DAY_S)
    for now in sorted(change + look for look in looks):
        come = due(cron, zone.key, seen, now)
        passed = [at for at in times if seen < at <= now]
        found = [] if come.now is None else [*reversed(come.missed), come.now]
        assert found == passed[-MOST_KEPT:]
        seen = seen if come.now is None else come.now


@pytest.mark.parametrize(
    ("cron", "zone", "day", "times"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", ["03:00+02:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["02:30+02:00"]),
        ("15,45 2 * * *", "Europe/Berlin", "2026-03-29", ["03:00+02:00"]),
        ("0 2,3 * * *", "Europe/Berlin", "2026-10-25", ["02:00+02:00", "03:00+01:00"]),
        ("30 */2 * * *", "Australia/Lord_Howe", "2026-04-05", ["00:30+11:00", "02:30+10:30"]),
        ("0 */6 * * *", "Australia/Lord_Howe", "2026-10-04", ["00:00+10:30", "06:00+11:00"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["02:30+11:00"]),
    ],
)
def test_skipped_time_runs_later_and_repeated_time_once(
    cron: str, zone: str, day: str, times: list[str]
) -> None:
    begin = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    found = times_after(cron, zone, begin.timestamp() - 1, len(times))
    shown = [datetime.fromtimestamp(at, ZoneInfo(zone)) for at in found]
    assert [it.isoformat("T", "minutes") for it in shown] == [f"{day}T{it}" for it in times]


def test_hourly_time_runs_in_both_hours_with_folders_of_their_own() -> None:
    begin = datetime(2026, 10, 25, 2, 5, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    times = times_after("30 * * * *", "Europe/Berlin", begin, 3)
    assert [at - times[0] for at in times] == [0, 3600, 7200]
    assert len({folder_name(at, "Europe/Berlin") for at in times}) == 3
