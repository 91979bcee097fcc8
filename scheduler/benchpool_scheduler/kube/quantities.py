"""Kubernetes' amounts as numbers; pure."""

from __future__ import annotations

import math
from functools import lru_cache

from kubernetes.utils.quantity import parse_quantity


@lru_cache(maxsize=4096)  # the same few amounts in all nodes and pods
def quantity(text: str) -> float:
    """Return an amount as a number; one that makes no sense counts as nothing.

    >>> quantity("500m"), quantity("1Gi"), quantity("8"), quantity("1e3"), quantity("many")
    (0.5, 1073741824.0, 8.0, 1000.0, 0.0)
    """
    try:
        value = float(parse_quantity(text))
    except (ValueError, ArithmeticError):
        return 0.0
    return value if math.isfinite(value) else 0.0
