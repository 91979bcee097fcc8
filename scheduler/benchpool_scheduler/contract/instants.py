"""Instants as users write them: a time in their own zone, or a duration from now."""

from __future__ import annotations

from datetime import datetime, timedelta

from benchpool_scheduler.contract import durations
from benchpool_scheduler.errors import InvalidInput

WAYS = "a time such as '2026-11-28 08:00' (by default in your time zone), or 36h from now"
"""Accepted formats of an instant, for options."""

FURTHEST_S = 10 * 366 * 86_400
"""Limit of an instant given as a duration from now, in seconds."""


def read(text: str, called: str, field: str, now: datetime) -> datetime:
    """Parse an instant and return it with its zone.

    Args:
        called: Name of the value in the error message.
        field: Key of the value, for the error.
        now: Current time, in the zone of the user who wrote the text.

    Raises:
        InvalidInput: The text is neither a time nor a duration.

    >>> noon = datetime.fromisoformat("2026-01-01T12:00:00+01:00")
    >>> read("2h", "--from", "begins", noon).isoformat()
    '2026-01-01T14:00:00+01:00'
    >>> read("2026-01-02 08:00", "--from", "begins", noon).isoformat()
    '2026-01-02T08:00:00+01:00'
    """
    ahead = durations.seconds(text)
    if ahead is not None:
        return now + timedelta(seconds=min(ahead, FURTHEST_S))
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as bad:
        raise InvalidInput(
            f"{called} is {text}. Give a time such as '2026-11-28 08:00', or a duration from now, "
            "such as 90m.",
            field=field,
        ) from bad
    return zoned(at, now)


def zoned(at: datetime, now: datetime) -> datetime:
    """Return an instant with a zone; without one it gets the zone of ``now``.

    If ``now`` is in the machine's zone, the machine's rules for summer time apply.
    """
    if at.tzinfo is not None:
        return at
    here = at.astimezone()
    return (
        here if now.astimezone().utcoffset() == now.utcoffset() else at.replace(tzinfo=now.tzinfo)
    )
