"""Kubernetes' amounts as numbers and back; pure."""

from __future__ import annotations

import math
from functools import lru_cache

_UNITS = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
    "Pi": 2.0**50,
    "Ei": 2.0**60,
}

GIB = 2.0**30


@lru_cache(maxsize=4096)  # the same few amounts in all nodes and pods
def quantity(text: str) -> float:
    """Return an amount as a number; one that makes no sense counts as nothing.

    >>> quantity("500m"), quantity("1Gi"), quantity("8"), quantity("1e3"), quantity("many")
    (0.5, 1073741824.0, 8.0, 1000.0, 0.0)
    """
    number = text.rstrip("KMGTPEimunk") if not text.isdigit() else text
    unit = text[len(number) :]
    try:
        value = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        return 0.0
    return value if math.isfinite(value) else 0.0


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
