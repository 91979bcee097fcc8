"""Calendar months of a time zone, for budgets of GPU-hours."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo


def month_of(now: float, zone: str) -> tuple[float, float]:
    """Return the start and end of the calendar month of an instant in a zone, in epoch seconds.

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
    """Return the day of an instant in a zone, as text.

    >>> day_of(1764543600, "Europe/Zurich")
    '1 December 2025'
    """
    here = datetime.fromtimestamp(at, ZoneInfo(zone))
    return f"{here.day} {MONTHS[here.month - 1]} {here.year}"


MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
