"""Ticks of a chart axis and their labels. Pure."""

from __future__ import annotations

import math

STEPS = (1, 2, 2.5, 5, 10)
"""Step sizes between ticks, times a power of ten."""


def ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Return round numbers from ``low`` to ``high``, at most one more than ``most``.

    >>> ticks(0.03, 1.2), ticks(-7.0, 130.0), ticks(2.0, 2.0)
    ([0.5, 1.0], [0.0, 50.0, 100.0], [2.0])
    """
    span = high - low
    if not span > 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(one * power for one in STEPS if one * power * (1 + 1e-9) >= span / most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = 12 - math.floor(math.log10(step))
    return [round(number * step, digits) for number in range(first, last + 1)]
