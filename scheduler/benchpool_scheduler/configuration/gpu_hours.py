"""Budgets of GPU-hours as ``benchpool.yaml`` says them, and the calendar month that they count."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from benchpool_scheduler.configuration.nodes import Item
from benchpool_scheduler.configuration.settings import UserHours
from benchpool_scheduler.core.fairness.gpu_hours import HourBudget

BOUNDS = ("soft", "hard")
SECTION = ("time_zone", *BOUNDS, "users")
MOST_HOURS = 1e9


def of_users(item: Item) -> UserHours:
    """Return what the section ``gpu_hours`` says. Errors: InvalidInput."""
    keys = item.entries(SECTION)
    users: Mapping[str, Item] = {}
    if "users" in keys and not keys["users"].is_null():
        users = keys["users"].entries()
    zone = UserHours().time_zone
    if "time_zone" in keys:
        zone = keys["time_zone"].text()
        if not is_zone(zone):
            keys["time_zone"].wrong(
                f"is {zone!r}, which is no time zone; write one as Europe/Zurich or UTC."
            )
    return UserHours(zone, _bounds(keys), {name: budget(each) for name, each in users.items()})


def budget(item: Item) -> HourBudget:
    """Return a budget. Errors: InvalidInput."""
    return _bounds(item.entries(BOUNDS))


def _bounds(keys: Mapping[str, Item]) -> HourBudget:
    soft, hard = (
        keys[key].number(most=MOST_HOURS) if key in keys and not keys[key].is_null() else None
        for key in BOUNDS
    )
    if soft is not None and hard is not None and soft > hard:
        keys["soft"].wrong(
            f"is {soft:g} GPU-hours, more than `hard` with {hard:g}: it would never count; lower "
            "it, or raise `hard`."
        )
    return HourBudget(soft, hard)


def is_zone(name: str) -> bool:
    """Tell whether there is a time zone of this name.

    >>> is_zone("Europe/Zurich"), is_zone("../etc"), is_zone("Europe")
    (True, False, False)
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def month_of(now: float, zone: str) -> tuple[float, float]:
    """Return when the calendar month of an instant begins and ends there, in epoch seconds.

    >>> from datetime import UTC
    >>> at = datetime(2026, 3, 29, 12, tzinfo=UTC).timestamp()
    >>> [datetime.fromtimestamp(it, UTC).isoformat() for it in month_of(at, "Europe/Zurich")]
    ['2026-02-28T23:00:00+00:00', '2026-03-31T22:00:00+00:00']
    """
    here = datetime.fromtimestamp(now, ZoneInfo(zone))
    first = here.replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)
    year, month = divmod(first.year * 12 + first.month, 12)
    following = first.replace(year=year, month=month + 1)
    return first.timestamp(), following.timestamp()


def day_of(at: float, zone: str) -> str:
    """Return the day of an instant as people read it.

    >>> day_of(1764543600, "Europe/Zurich")
    '1 December 2025'
    """
    here = datetime.fromtimestamp(at, ZoneInfo(zone))
    return f"{here.day} {MONTHS[here.month - 1]} {here.year}"


MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
