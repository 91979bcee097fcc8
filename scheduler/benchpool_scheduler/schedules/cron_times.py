"""Times of a schedule: five fields of cron, or words, on the clock of a time zone.

Each time on the clock runs once. If the change to summer time skips it, it runs at the end of the
skipped time. If the clock shows it twice, it runs the first time. Times of every hour (``0 * * *
*``) run whenever the clock shows them.

The package cronsim only iterates over the calendar here. Its own rules for summer time differ
between its two directions where the clock changes by 30 minutes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice, takewhile
from math import inf
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from benchpool_scheduler.errors import InvalidInput

FORMS = "'night at 2', 'weekday at 18:30', 'monday at 9', 'hour', or five fields as '0 2 * * *'"
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_WORDS = {"day": "*", "night": "*", "morning": "*", "evening": "*", "weekday": "1-5"} | {
    day: str(number) for number, day in enumerate(_DAYS)
}
_HOURS, _DAY_S = 24, 86_400.0
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


def times_before(cron: str, zone: str, until: float, most: int, after: float = -inf) -> list[float]:
    """Return at most ``most`` times after ``after`` up to and including ``until``, newest first.

    >>> times_before("0 * * * *", "UTC", 7200.0, most=2)
    [7200.0, 3600.0]
    >>> times_before("0 * * * *", "UTC", 7200.0, most=2, after=3600.0)
    [7200.0]
    """
    minute_after = until // 60 * 60 + 60
    found = islice(_times(cron, zone_of(zone), minute_after, reverse=True), most)
    return list(takewhile(lambda at: at > after, found))


def folder_name(at: float, zone: str) -> str:
    """Return the name of the result folder of a time.

    >>> folder_name(1_800_000_000.0, "UTC")
    '2027-01-15-0800'
    >>> [folder_name(1_792_886_400.0 + hour * 3600, "Europe/Berlin") for hour in (0, 1)]
    ['2026-10-25-0200', '2026-10-25-0200-second']
    """
    shown = datetime.fromtimestamp(at, zone_of(zone))
    return f"{shown:%Y-%m-%d-%H%M}{'-second' if shown.fold else ''}"


def _times(cron: str, zone: ZoneInfo, start: float, *, reverse: bool = False) -> Iterator[float]:
    """Return an iterator over the times after ``start``, or before it, newest first."""
    from cronsim import CronSim, CronSimError

    # The clock may change soon after the start. Of both clock times, begin at the outer one.
    offsets = (_offset(start, zone), _offset(start + (-_DAY_S if reverse else _DAY_S), zone))
    begin = datetime.fromtimestamp(start, UTC) + (max if reverse else min)(offsets)
    try:
        clock_times = CronSim(cron, begin.replace(tzinfo=None), reverse=reverse)
    except CronSimError as failed:
        raise InvalidInput(
            f"{cron!r} is not a time ({failed}). Write {FORMS}.", field="when"
        ) from None
    if len(clock_times.hours) == _HOURS:
        found = _whenever_shown(clock_times, zone, reverse=reverse)
    else:
        found = (_once(shown, zone) for shown in clock_times)
    return (at for at, _ in groupby(found) if (at < start if reverse else at > start))


def _whenever_shown(
    clock_times: Iterator[datetime], zone: ZoneInfo, *, reverse: bool
) -> Iterator[float]:
    """Yield each time at which the clock shows one of these times, in order."""
    repeated: list[float] = []
    for shown in clock_times:
        first, second = _readings(shown, zone)
        if first < second:
            repeated += (first, second)
            continue
        yield from sorted(repeated, reverse=reverse)
        repeated.clear()
        if first == second:
            yield first


def _once(shown: datetime, zone: ZoneInfo) -> float:
    """Return the first time at which the clock shows this time, or a later one if it skips it."""
    first, second = _readings(shown, zone)
    if first <= second:
        return first
    skipped = range(int(second), int(first))
    before = _offset(second, zone)
    return float(
        skipped.start + bisect_left(skipped, True, key=lambda at: _offset(at, zone) != before)
    )


def _readings(shown: datetime, zone: ZoneInfo) -> tuple[float, float]:
    """Return a clock time in epoch seconds by the offsets before and after a change nearby.

    Both are equal without a change. The first is earlier if the clock shows this time twice, and
    later if it never does (PEP 495).
    """
    first, second = (shown.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    return first, second


def _offset(at: float, zone: ZoneInfo) -> timedelta:
    return datetime.fromtimestamp(at, zone).utcoffset() or timedelta(0)
