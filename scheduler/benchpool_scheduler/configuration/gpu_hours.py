"""Budgets of GPU-hours in ``benchpool.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from benchpool_scheduler.configuration.nodes import Item
from benchpool_scheduler.configuration.settings import UserHours
from benchpool_scheduler.core.fairness.gpu_hours import HourBudget

BOUNDS = ("soft", "hard")
SECTION = ("time_zone", *BOUNDS, "users")
MOST_HOURS = 1e9


def of_users(item: Item) -> UserHours:
    """Parse the section ``gpu_hours``. Errors: InvalidInput."""
    keys = item.entries(SECTION)
    users: Mapping[str, Item] = {}
    if "users" in keys and not keys["users"].is_null():
        users = keys["users"].entries()
    zone = UserHours().time_zone
    if "time_zone" in keys:
        zone = keys["time_zone"].text()
        if not is_zone(zone):
            keys["time_zone"].wrong(
                f"is {zone!r}, which is not a time zone; write one such as Europe/Zurich or UTC."
            )
    return UserHours(zone, _bounds(keys), {name: budget(each) for name, each in users.items()})


def budget(item: Item) -> HourBudget:
    """Parse a budget. Errors: InvalidInput."""
    return _bounds(item.entries(BOUNDS))


def _bounds(keys: Mapping[str, Item]) -> HourBudget:
    soft, hard = (
        keys[key].number(most=MOST_HOURS) if key in keys and not keys[key].is_null() else None
        for key in BOUNDS
    )
    if soft is not None and hard is not None and soft > hard:
        keys["soft"].wrong(
            f"is {soft:g} GPU-hours, more than `hard` ({hard:g}), so it would have no effect. "
            "Lower it, or raise `hard`."
        )
    return HourBudget(soft, hard)


def is_zone(name: str) -> bool:
    """Return whether a time zone of this name exists.

    >>> is_zone("Europe/Zurich"), is_zone("../etc"), is_zone("Europe")
    (True, False, False)
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
