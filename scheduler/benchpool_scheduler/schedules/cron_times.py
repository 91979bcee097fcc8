"""Times of a schedule: five fields of cron, or words, on the clock of a time zone.

Summer time is as in Debian's cron. A time in the skipped hour runs when that hour is over, and a
time in the repeated hour runs once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from benchpool_scheduler.errors import InvalidInput

FORMS = "'night at 2', 'weekday at 18:30', 'monday at 9', 'hour', or five fields as '0 2 * * *'"
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_WORDS = {"day": "*", "night": "*", "morning": "*", "evening": "*", "weekday": "1-5"} | {
    day: str(number) for number, day in enumerate(_DAYS)
}
_SPOKEN = re.compile(r"(?:every )?([a-z]+) at (\d{1,2})(?::(\d{2}))?")


def cron_of(when: str) -> str:
    """Return the five fields of cron for a time expression.

    Errors: InvalidInput.

    >>> cron_of("night at 2"), cron_of("every weekday at 18:30"), cron_of("hour")
    ('0 2 * * *', '30 18 * * 1-5', '0 * * * *')
    >>> cron_of("*/20 8-17 * * *")
    '*/20 8-17 * * *'
    """
    text = " ".join(when.split()).lower()
    if text in {"hour", "every hour"}:
        return "0 * * * *"
    spoken = _SPOKEN.fullmatch(text)
    if spoken is None:
        if not times_after(text, "UTC", 0.0, 1):
            raise InvalidInput(f"{when!r} has no next time. Write {FORMS}.", field="when")
        return text
    day, hour, minute = spoken[1], int(spoken[2]), int(spoken[3] or 0)
    if day not in _WORDS or hour > 23 or minute > 59:
        raise InvalidInput(f"{when!r} is not a time. Write {FORMS}.", field="when")
    return f"{minute} {hour} * * {_WORDS[day]}"


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name. Errors: InvalidInput."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"There is no time zone {name[:60]!r}. Write a name such as Europe/Berlin or UTC.",
            field="zone",
        ) from None


def times_after(cron: str, zone: str, after: float, most: int) -> list[float]:
    """Return at most ``most`` next times, in epoch seconds.

    Args:
        cron: Five fields. ``zone``: a name such as ``Europe/Berlin``.
        after: The first time is later than this.

    Errors: InvalidInput.

    >>> before_summer = datetime(2026, 3, 28, 12, tzinfo=ZoneInfo("UTC")).timestamp()
    >>> found = times_after("30 2 * * *", "Europe/Berlin", before_summer, 2)
    >>> [str(datetime.fromtimestamp(at, ZoneInfo("Europe/Berlin"))) for at in found]
    ['2026-03-29 03:00:00+02:00', '2026-03-30 02:30:00+02:00']
    """
    return list(islice(_times(cron, zone_of(zone), after), most))


def times_before(cron: str, zone: str, until: float, most: int) -> list[float]:
    """Return at most ``most`` times up to and including ``until``, newest first.

    >>> times_before("0 * * * *", "UTC", 7200.0, 2)
    [7200.0, 3600.0]
    """
    minute_after = until // 60 * 60 + 60
    return list(islice(_times(cron, zone_of(zone), minute_after, reverse=True), most))


def folder_name(at: float, zone: str) -> str:
    """Return the name of the result folder of a time.

    >>> folder_name(1_800_000_000.0, "UTC")
    '2027-01-15-0800'
    """
    return f"{datetime.fromtimestamp(at, zone_of(zone)):%Y-%m-%d-%H%M}"


def _times(cron: str, zone: ZoneInfo, start: float, *, reverse: bool = False) -> Iterator[float]:
    from cronsim import CronSim, CronSimError

    try:
        times = CronSim(cron, datetime.fromtimestamp(start, zone), reverse=reverse)
    except CronSimError as failed:
        raise InvalidInput(
            f"{cron!r} is not a time ({failed}). Write {FORMS}.", field="when"
        ) from None
    return (at.timestamp() for at in times)
