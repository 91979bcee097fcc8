"""Kubernetes' quantities as numbers: pure."""

from __future__ import annotations

import math
from functools import lru_cache

from kubernetes.utils.quantity import parse_quantity


@lru_cache(maxsize=4096)  # few different quantities occur in nodes and pods
def quantity(text: str) -> float:
    """Return a quantity as a number; an invalid one is 0.

    >>> quantity("500m"), quantity("1Gi"), quantity("8"), quantity("1e3"), quantity("many")
    (0.5, 1073741824.0, 8.0, 1000.0, 0.0)
    """
    try:
        value = float(parse_quantity(text))
    except (ValueError, ArithmeticError):
        return 0.0
    return value if math.isfinite(value) else 0.0
