"""Durations as users write them, here and in JupyterLab: ``90``, ``45s``, ``90m``, ``1h30m``."""

from __future__ import annotations

import re

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import duration

_UNITS = {"d": 86400, "h": 3600, "m": 60, "min": 60, "s": 1}
WAYS = "90m, 2h, 3d, or seconds"
"""Accepted formats of a duration, for forms and options."""

_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(min|[dhms])", re.ASCII)


def seconds(text: str) -> float | None:
    """Return the seconds of a duration, or None for other text. A bare number is seconds.

    >>> seconds("90"), seconds("90m"), seconds("1h30m"), seconds("1.5 h"), seconds("90 soon")
    (90.0, 5400.0, 5400.0, 5400.0, None)
    """
    plain = text.strip().lower()
    if re.fullmatch(r"\d{1,12}", plain, re.ASCII):
        return float(plain)
    if not plain or _PART.sub("", plain).strip():
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(plain))


def written(whole: int) -> str:
    """Return a number of seconds as form text that parses to the same number.

    >>> written(5400), written(7200), written(95), written(129_600)
    ('1h30m', '2h', '1m35s', '1d12h')
    """
    parts = []
    for unit in ("d", "h", "m", "s"):
        number, whole = divmod(whole, _UNITS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def read(text: str, called: str, field: str, least: float | None, most: float | None) -> int:
    """Parse a duration with bounds and return its seconds.

    Args:
        text: Text of the user.
        called: Name of the value in the error message.
        field: Key of the value, for the error.
        least, most: Bounds in seconds, None for none.

    Raises:
        InvalidInput: The text is not a duration, or is out of bounds. The message has the bounds.

    >>> read("1h30m", "Time limit", "time_limit_s", 1, 86400)
    5400
    """
    found = seconds(text)
    if found is None or not (least or 0) <= round(found) <= (most or found):
        raise InvalidInput(
            f"{called} is {text!r}. Give a time such as 90m, 1h30m or 2d, or seconds; "
            f"at least {duration(least or 0)} and at most {duration(most or 0)}.",
            field=field,
        )
    return round(found)
