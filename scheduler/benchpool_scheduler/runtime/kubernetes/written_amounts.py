"""Amounts as Kubernetes writes them; pure."""

from __future__ import annotations

import math

GIB = 2.0**30


def cores(amount: float) -> str:
    """Return processor cores as Kubernetes writes them.

    >>> cores(0.5), cores(2)
    ('500m', '2000m')
    """
    return f"{math.ceil(amount * 1000)}m"


def gibibytes(amount: float) -> str:
    """Return memory as Kubernetes writes it.

    >>> gibibytes(1.5)
    '1536Mi'
    """
    return f"{math.ceil(amount * 1024)}Mi"
