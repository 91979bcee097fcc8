"""Texts for durations, and for ranges of estimated starts.

>>> duration(42), duration(754), duration(11100), duration(129600)
('42 s', '12 min', '3 h 5 min', '1 d 12 h')
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Protocol

from benchpool_scheduler.phrases.numbers import percent

NOT_KNOWN = "not known yet"
"""Text in place of a missing estimate."""


def duration(seconds: float) -> str:
    """Return a duration in at most two whole units; a negative one counts as zero.

    It is rounded down: 119 s are ``1 min``.
    """
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def exactly(seconds: float) -> str:
    """Return a duration in full, for values that a user has set or must keep to.

    >>> exactly(5400), exactly(95), exactly(0.5), exactly(172_800), exactly(0)
    ('1 h 30 min', '1 min 35 s', '0.5 s', '2 d', '0 s')
    """
    whole, parts = int(seconds), []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        number, whole = divmod(whole, size)
        if number:
            parts.append(f"{number} {unit}")
    rest = whole + round(seconds % 1, 3)
    if rest or not parts:
        parts.append(f"{rest:g} s")
    return " ".join(parts)


def gpu_time(gpu_seconds: float) -> str:
    """Return an amount of GPU seconds, e.g. the loss of a pause.

    >>> gpu_time(5400)
    '1 h 30 min of one GPU'
    """
    return f"{duration(gpu_seconds)} of one GPU"


def at_most(seconds: float) -> str:
    """Return an upper bound of a duration: as ``duration``, but rounded up.

    >>> at_most(12.2), at_most(119), at_most(86401)
    ('13 s', '2 min', '1 d 1 h')
    """
    step = 1 if seconds <= 60 else 60 if seconds <= 86_400 else 3600
    return duration(math.ceil(seconds / step) * step)


def left(seconds: float | None) -> str:
    """Return the expected remaining time; empty if it is unknown or over.

    >>> left(42), left(1201), left(-1), left(None)
    ('about 42 s left', 'about 21 min left', '', '')
    """
    return "" if seconds is None or seconds < 1 else f"about {at_most(seconds)} left"


def ago(seconds: float) -> str:
    """Return how long ago something was; a negative value is in the future.

    >>> ago(2), ago(754), ago(-300)
    ('just now', '12 min ago', 'in 5 min')
    """
    if abs(seconds) < 5:
        return "just now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def start_in(earliest: float | None, likely: float | None, latest: float | None) -> str | None:
    """Return an estimated start as a range, or None if nothing is known.

    The arguments are in seconds from now.

    >>> start_in(300, 480, 720), start_in(3000, None, 7800), start_in(None, 480, None)
    ('in 5–12 min', 'in 50 min to 2 h 10 min', 'in about 8 min')
    """
    if latest is not None:
        return _range(earliest, latest)
    if likely is not None:
        return f"in about {duration(likely)}"
    if earliest is None or earliest < 1:
        return None
    return f"in {duration(earliest)} or later"


class Estimated(Protocol):
    """Estimated start with the fields of the wire contract."""

    @property
    def earliest(self) -> datetime | None: ...
    @property
    def likely(self) -> datetime | None: ...
    @property
    def latest(self) -> datetime | None: ...
    @property
    def basis(self) -> str | None: ...


def start_range(start: Estimated | None, now: datetime) -> str:
    """Return an estimated start as a range from now, or ``NOT_KNOWN`` (R22)."""
    if start is None:
        return NOT_KNOWN
    earliest, likely, latest = (
        None if at is None else (at - now).total_seconds()
        for at in (start.earliest, start.likely, start.latest)
    )
    return start_in(earliest, likely, latest) or NOT_KNOWN


def start_sentence(start: Estimated | None, now: datetime) -> str:
    """Return the range of an estimated start, with its basis."""
    text = start_range(start, now)
    basis = None if start is None else start.basis
    return text if basis is None or text == NOT_KNOWN else f"{text}, {basis}"


def horizon_row(up_to_s: float | None, starts: int, *some: int) -> list[str]:
    """Return a table row: the horizon (None is unlimited), the starts, and their shares."""
    away = "longer" if up_to_s is None or math.isinf(up_to_s) else f"up to {duration(up_to_s)}"
    return [away, str(starts), *(percent(one / starts) if starts else "–" for one in some)]


def _range(earliest: float | None, latest: float) -> str:
    if latest < 5:
        return "any moment"
    last = at_most(latest)
    if earliest is None or earliest < 1:
        return f"within {last}"
    first = duration(earliest)
    if first == last:
        return f"in about {last}"
    number, _, unit = first.partition(" ")
    if unit == last.partition(" ")[2] and " " not in unit:
        return f"in {number}–{last}"
    return f"in {first} to {last}"
