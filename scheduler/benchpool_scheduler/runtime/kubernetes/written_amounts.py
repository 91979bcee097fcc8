"""Amounts in the notation of Kubernetes: pure."""

from __future__ import annotations

import math

GIB = 2.0**30


def cores(amount: float) -> str:
    """Return processor cores in the notation of Kubernetes.

    >>> cores(0.5), cores(2)
    ('500m', '2000m')
    """
    return f"{math.ceil(amount * 1000)}m"


def gibibytes(amount: float) -> str:
    """Return memory in the notation of Kubernetes.

    >>> gibibytes(1.5)
    '1536Mi'
    """
    return f"{math.ceil(amount * 1024)}Mi"
