"""Conversion of numbers of any library to metrics. Pure."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

MOST_NAMES = 100
LONGEST_STEP = 10**15


def value_of(value: object) -> float | str | None:
    """Return a number, ``"nan"`` if it is not finite, or None if the value is not a number.

    >>> value_of(0.5), value_of(float("inf")), value_of("high"), value_of(True)
    (0.5, 'nan', None, None)
    """
    if isinstance(value, (bool, str, bytes)):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except Exception:
        return None
    return number if math.isfinite(number) else "nan"


def step_of(step: object) -> int | None:
    """Return a step as an integer from 0, or None if it is not one.

    >>> step_of(3), step_of(2.0), step_of(None), step_of(-1), step_of("7")
    (3, 2, None, None, None)
    """
    if step is None or isinstance(step, (bool, str, bytes)):
        return None
    try:
        whole = operator.index(step)  # type: ignore[arg-type]
    except TypeError:
        number = value_of(step)
        if not isinstance(number, float):
            return None
        whole = math.floor(number)
    return whole if 0 <= whole < LONGEST_STEP else None


def numbers_of(values: Mapping[Any, object]) -> dict[str, float | None]:
    """Return the numbers of a mapping by name, with None for a number that is not finite.

    Names of nested mappings are joined.

    >>> numbers_of({"loss": 0.5, "val": {"acc": float("nan")}, "text": "x"})
    {'loss': 0.5, 'val/acc': None}
    """
    found: dict[str, float | None] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            inner = numbers_of(value)
            found.update({f"{name}/{below}": number for below, number in inner.items()})
        elif (number := value_of(value)) is not None:
            found[str(name)] = None if isinstance(number, str) else number
    return dict(list(found.items())[:MOST_NAMES])
