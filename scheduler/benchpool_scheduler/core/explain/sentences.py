"""Amounts of resources in the sentences shown to users."""

from __future__ import annotations

from benchpool_scheduler.core.jobs.amounts import UNITS
from benchpool_scheduler.phrases import count

Number = int | float | str | None


def plain(amount: int, resource: int) -> int | float:
    """Return an amount in the reader's units: GPUs, CPUs or GiB.

    >>> plain(2000, 0), plain(2500, 1), plain(1536, 2)
    (2, 2.5, 1.5)
    """
    whole, rest = divmod(amount, UNITS[resource])
    return amount / UNITS[resource] if rest else whole


def all_plain(resource: int, *amounts: int | None) -> list[int | float | None]:
    """Return several amounts of one resource in the reader's units. None stays None.

    >>> all_plain(0, 2000, None)
    [2, None]
    """
    return [None if amount is None else plain(amount, resource) for amount in amounts]


def measured(amount: int, resource: int) -> str:
    """Return an amount of a resource with its unit.

    >>> measured(2000, 0), measured(1000, 1), measured(1536, 2)
    ('2 GPUs', '1 CPU', '1.5 GiB of memory')
    """
    if resource < 2:
        return count(plain(amount, resource), ("GPU", "CPU")[resource])
    return f"{plain(amount, resource):g} GiB of memory"
