"""Time range of a report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from benchpool_scheduler.contract.use import UseQuery
from benchpool_scheduler.errors import InvalidInput

USUAL_DAYS, MOST_DAYS = 30, 400
FIRST_YEAR, LAST_YEAR = 1970, 2999
"""Years that a query may contain; beyond them, calendars of other time zones have no days."""


@dataclass(frozen=True, slots=True)
class Range:
    """Time range from ``begin`` until ``end``, in epoch seconds; it is shown in ``zone``."""

    begin: float
    end: float
    zone: ZoneInfo

    @property
    def length_s(self) -> float:
        """Return the length in seconds."""
        return self.end - self.begin

    def at(self, seconds: float) -> datetime:
        """Return an instant in the time zone of the range."""
        return datetime.fromtimestamp(seconds, self.zone)

    def words(self) -> str:
        """Return the range in words.

        >>> asked(UseQuery(month="2026-02"), 1.9e9, "Europe/Berlin").words()
        'From 2026-02-01 00:00 to 2026-03-01 00:00 (Europe/Berlin)'
        """
        begin, end = (f"{self.at(it):%Y-%m-%d %H:%M}" for it in (self.begin, self.end))
        return f"From {begin} to {end} ({self.zone.key})"


def asked(query: UseQuery, now: float, zone: str) -> Range:
    """Return the range of a query, without its future part.

    Args:
        now: Epoch seconds. ``zone``: time zone of the months.

    Errors: InvalidInput for a range that is empty, in the future, or too long.
    """
    whose = ZoneInfo(zone)
    if query.month is not None:
        year, month = map(int, query.month.split("-"))
        first = datetime(year, month, 1, tzinfo=whose)
        after = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=whose)
        return _checked(first.timestamp(), after.timestamp(), now, whose, "month")
    for field, at in (("begin", query.begin), ("end", query.end)):
        if at is not None and not FIRST_YEAR <= at.year <= LAST_YEAR:
            raise InvalidInput(
                f"The year of {field} is {at.year}. Use a year from {FIRST_YEAR} to {LAST_YEAR}.",
                field=field,
                numbers={"year": at.year, "first": FIRST_YEAR, "last": LAST_YEAR},
            )
    end = now if query.end is None else query.end.timestamp()
    usual = end - timedelta(days=USUAL_DAYS).total_seconds()
    begin = usual if query.begin is None else query.begin.timestamp()
    return _checked(begin, end, now, whose, "begin")


def _checked(begin: float, end: float, now: float, zone: ZoneInfo, field: str) -> Range:
    found = Range(begin, min(end, now), zone)
    days = (end - begin) / 86_400
    if begin >= now:
        raise InvalidInput(
            f"The range begins on {found.at(begin):%Y-%m-%d %H:%M} ({zone.key}), in the future. "
            "Use an earlier begin.",
            field=field,
        )
    if end <= begin:
        raise InvalidInput(
            "The end of the range is not after its begin. Use a later end.", field="end"
        )
    if days > MOST_DAYS + 1:
        raise InvalidInput(
            f"The range has {days:.0f} days; use is kept for {MOST_DAYS}. Use a shorter range.",
            field=field,
            numbers={"days": round(days), "limit": MOST_DAYS},
        )
    return found
