"""Swept values as users type them, e.g. ``1, 2, 4``, ``0..4`` or ``3e-5 … 3e-3 log``."""

from __future__ import annotations

import json
import math
import re

from benchpool_scheduler.contract.sweeps import ListedValues, Scalar, SweptValues, ValueRange
from benchpool_scheduler.errors import InvalidInput

FORMS = (
    "1, 2, 4 · 0..4 · × 5 · 3e-5 … 3e-3 log · log:3e-5:3e-3 · lin:0:1 · log:1e-4:1e-1:4 (4 points)"
)
"""Accepted formats, for forms and error messages."""

MOST_VALUES = 1000
_WORDS = {"true": True, "false": False, "True": True, "False": False}

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_COUNTED = re.compile(r"(?:×|x|\*)\s*(\d{1,4})")
_WHOLE = re.compile(r"([+-]?\d{1,9})\s*\.\.\s*([+-]?\d{1,9})")
_NAMED = re.compile(rf"(log|lin|int):({_NUMBER}):({_NUMBER})(?::(\d{{1,4}}))?")
_BEGUN = re.compile(rf"(?:log|lin|int):|[A-Za-z]+:{_NUMBER}:{_NUMBER}\b")
"""Start of a range, including one with a mistyped word; quotes make it a word."""
_SPOKEN = re.compile(rf"({_NUMBER})\s*(?:…|\.\.\.)\s*({_NUMBER})(?:\s+(log|lin|int))?")


def parse(text: str, name: str) -> SweptValues:
    """Parse the text of swept values.

    Args:
        text: Text as typed.
        name: Name of the parameter, for error messages.

    Raises:
        InvalidInput: The text is invalid; the parameter is the field of the error.

    >>> parse("1, 2, 4", "layers")
    ListedValues(values=[1, 2, 4])
    >>> parse("0..4", "seed") == parse("× 5", "seed")
    True
    >>> parse("log:3e-5:3e-3", "lr") == parse("3e-5 … 3e-3 log", "lr")
    True
    >>> parse("int:1:16", "depth")
    ValueRange(low=1.0, high=16.0, log=False, whole=True, points=None)
    >>> parse("adam, sgd", "optimizer")
    ListedValues(values=['adam', 'sgd'])
    """
    typed = text.strip()
    if found := _COUNTED.fullmatch(typed):
        return _counted(0, int(found[1]) - 1, name)
    if found := _WHOLE.fullmatch(typed):
        return _counted(int(found[1]), int(found[2]), name)
    if found := _NAMED.fullmatch(typed):
        return _range(found[1], found[2], found[3], name, found[4])
    if found := _SPOKEN.fullmatch(typed):
        return _range(found[3] or "lin", found[1], found[2], name, None)
    values = [_scalar(part.strip()) for part in typed.split(",") if part.strip()]
    if not values or _BEGUN.match(typed):
        wrong = f"{typed!r} is not a range" if values else "No values are given"
        raise InvalidInput(f"{wrong} for {name!r}. Accepted forms: {FORMS}.", field=name)
    return ListedValues(_bounded(values, name))


def shown(values: SweptValues) -> str:
    """Return values as text that can be typed again.

    >>> shown(parse("3e-5 … 3e-3 log", "lr"))
    'log:3e-05:0.003'
    >>> shown(parse("adam,sgd", "optimizer"))
    'adam, sgd'
    """
    if isinstance(values, ListedValues):
        return ", ".join(one if isinstance(one, str) else json.dumps(one) for one in values.values)
    kind = "log" if values.log else "int" if values.whole else "lin"
    points = "" if values.points is None else f":{values.points}"
    return f"{kind}:{values.low:g}:{values.high:g}{points}"


def checked(values: SweptValues, name: str) -> SweptValues:
    """Return the values if they can be drawn from. Errors: InvalidInput for a bad range."""
    if isinstance(values, ListedValues):
        return values
    low, high = values.low, values.high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(
            f"The range of {name!r} goes from {low:g} to {high:g}. The first must be smaller.",
            field=name,
        )
    if values.log and low <= 0:
        raise InvalidInput(
            f"The range of {name!r} begins at {low:g}. On a log scale it must begin above 0.",
            field=name,
        )
    if values.whole and (low != int(low) or high != int(high)):
        raise InvalidInput(
            f"The range of {name!r} needs whole numbers, not {low:g} and {high:g}.", field=name
        )
    return values


def _range(kind: str, low: str, high: str, name: str, points: str | None) -> SweptValues:
    counted = None if points is None else int(points)
    of = ValueRange(float(low), float(high), kind == "log", kind == "int", counted)
    if of.points is not None and not 2 <= of.points <= MOST_VALUES:
        raise InvalidInput(
            f"{name!r} has {of.points} points. From 2 to {MOST_VALUES} are possible.", field=name
        )
    return checked(of, name)


def _counted(first: int, last: int, name: str) -> ListedValues:
    if last < first:
        raise InvalidInput(
            f"The range of {name!r} goes from {first} to {last}. The first must be smaller.",
            field=name,
        )
    return ListedValues(_bounded(range(first, last + 1), name))


def _bounded(values: list[Scalar] | range, name: str) -> list[Scalar]:
    if len(values) > MOST_VALUES:
        raise InvalidInput(
            f"{name!r} has {len(values)} values; the limit is {MOST_VALUES}.", field=name
        )
    return list(values)


def _scalar(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if re.fullmatch(_NUMBER, text):
        return float(text)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
