"""Percentiles of observed values."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the given percentile by nearest rank; 0 without values.

    >>> percentile([1, 2, 3, 4], 50), percentile([1, 2, 3, 4], 99)
    (2, 4)
    """
    return ordered[math.ceil(percent / 100 * len(ordered)) - 1] if ordered else 0.0
