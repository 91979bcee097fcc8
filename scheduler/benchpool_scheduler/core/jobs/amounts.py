"""Amounts of resources as integers, so that arithmetic is exact.

GPUs count in thousandths of a GPU, CPUs in thousandths of a core, memory in MiB. GPUs come first
wherever the order of resources matters (R6).

    >>> Amounts(2000, 4000, 0) + Amounts(1000, 0, 512)
    Amounts(gpus=3000, cpus=4000, memory=512)
"""

from __future__ import annotations

from typing import NamedTuple

RESOURCES = ("GPUs", "CPUs", "memory")
"""Names of the three resources of an amount, for sentences."""

WHOLE_GPU = 1000
"""One GPU in internal units."""

UNITS = (WHOLE_GPU, 1000, 1024)
"""Internal units per GPU, core and GiB."""


_new = tuple.__new__  # saves one call per sum: a pass makes tens of thousands


class Amounts(NamedTuple):
    """Thousandths of a GPU, thousandths of a core, MiB."""

    gpus: int = 0
    cpus: int = 0
    memory: int = 0

    def __add__(self, other: tuple[int, ...]) -> Amounts:  # type: ignore[override]
        """Return the sum, resource by resource."""
        return _new(Amounts, (self[0] + other[0], self[1] + other[1], self[2] + other[2]))

    def __sub__(self, other: tuple[int, ...]) -> Amounts:
        """Return the difference, resource by resource."""
        return _new(Amounts, (self[0] - other[0], self[1] - other[1], self[2] - other[2]))

    def times(self, count: int) -> Amounts:
        """Return this amount ``count`` times."""
        if count == 1:
            return self
        return _new(Amounts, (self[0] * count, self[1] * count, self[2] * count))


NOTHING = Amounts()

Bounds = tuple[int | None, int | None, int | None]
"""One bound per resource. None means no bound."""


def exact(cpus: float, memory_gib: float) -> tuple[int, int]:
    """Return cores and GiB in internal units, rounded to the nearest.

    >>> exact(2.5, 0.5)
    (2500, 512)
    """
    return round(cpus * 1000), round(memory_gib * 1024)


def within(amount: Amounts, bounds: Bounds) -> bool:
    """Return whether every resource is within its bound.

    >>> within(Amounts(2000, 9), (2000, None, None)), within(Amounts(3000), (2000, None, None))
    (True, False)
    """
    return first_over(amount, bounds) is None


def first_over(amount: Amounts, bounds: Bounds) -> int | None:
    """Return the index of the first resource above its bound, or None."""
    for index, bound in enumerate(bounds):
        if bound is not None and amount[index] > bound:
            return index
    return None
