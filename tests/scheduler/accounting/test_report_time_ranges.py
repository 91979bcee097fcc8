"""Time ranges of use reports: every request is a valid range or a rejection with its field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.accounting.ranges import MOST_DAYS, asked
from benchpool_scheduler.contract.use import UseQuery
from benchpool_scheduler.errors import InvalidInput

NOW = datetime(2026, 11, 23, 16, 0, tzinfo=UTC)
ZONES = st.sampled_from(["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Europe/Berlin"])
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda it: timezone(timedelta(minutes=it)))
TIMES = st.none() | st.datetimes(timezones=OFFSETS)


@given(begin=TIMES, end=TIMES, zone=ZONES)
def test_any_two_times_are_valid_range_or_rejected(
    begin: datetime | None, end: datetime | None, zone: str
) -> None:
    field, found = "", None
    try:
        found = asked(UseQuery(begin=begin, end=end), NOW.timestamp(), zone)
    except InvalidInput as refused:
        field = refused.field or ""
    if found is None:
        assert field in ("begin", "end")
    else:
        assert found.begin < found.end <= NOW.timestamp()
        assert found.end - found.begin <= (MOST_DAYS + 1) * 86_400
        assert found.words()


@pytest.mark.parametrize(
    ("field", "at"),
    [
        ("begin", "9999-12-31T23:59:59-14:00"),
        ("end", "0001-01-01T00:00:00+14:00"),
        ("begin", "1969-12-31T23:59:59+00:00"),
    ],
)
def test_unsupported_year_is_rejected(field: str, at: str) -> None:
    time = datetime.fromisoformat(at)
    query = UseQuery(begin=time) if field == "begin" else UseQuery(end=time)
    with pytest.raises(InvalidInput, match=f"The year of {field} is {time.year}. Use a year from"):
        asked(query, NOW.timestamp(), "UTC")


def test_range_beyond_retention_is_rejected() -> None:
    since = UseQuery(begin=datetime(1970, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidInput, match=r"The range has 20781 days; use is kept for 400"):
        asked(since, NOW.timestamp(), "UTC")
