"""Instants as people write them: a time in their own zone, or how long from now."""

from __future__ import annotations

from datetime import datetime, timedelta

from benchpool_scheduler.contract import durations
from benchpool_scheduler.errors import InvalidInput

WAYS = "a time such as '2026-11-28 08:00', in your zone where it names none, or 36h from now"
"""How an instant may be written, as options say it."""

FURTHEST_S = 10 * 366 * 86_400
"""No instant is read that lies further ahead, in seconds."""


def read(text: str, called: str, field: str, now: datetime) -> datetime:
    """Return the instant that somebody wrote, with its zone.

    Args:
        called: What a sentence calls it; ``field`` is its key, for the error.
        now: The present time, with the zone of whoever wrote it.

    Raises:
        InvalidInput: It is neither a time nor a length of time.

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
            f"{called} is {text}: give a time such as '2026-11-28 08:00', or how long from now, "
            "such as 90m.",
            field=field,
        ) from bad
    return zoned(at, now)


def zoned(at: datetime, now: datetime) -> datetime:
    """Return an instant that names its zone; without one it is that of ``now``.

    A machine's own zone knows of summer and winter: where ``now`` is of that zone, so does this.
    """
    if at.tzinfo is not None:
        return at
    here = at.astimezone()
    return (
        here if now.astimezone().utcoffset() == now.utcoffset() else at.replace(tzinfo=now.tzinfo)
    )
