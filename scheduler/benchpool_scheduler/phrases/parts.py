"""Rounded parts of a whole that add up to the rounded whole."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rounded_parts(amounts: Sequence[float], steps: int) -> list[int]:
    """Return whole numbers in the proportions of the amounts, with the sum ``steps``.

    Method of largest remainders (Hamilton; see Balinski and Young, *Fair Representation*, 1982):
    each amount is rounded down, and the amounts with the largest remainders get one more each.

    >>> rounded_parts([1.0, 1.0, 1.0], 100), rounded_parts([0.0, 2.0], 7), rounded_parts([], 3)
    ([34, 33, 33], [0, 7], [])
    """
    whole = math.fsum(amounts)
    if whole <= 0:
        return [0] * len(amounts)
    exact = [steps * amount / whole for amount in amounts]
    parts = [math.floor(one) for one in exact]
    by_loss = sorted(range(len(exact)), key=lambda at: parts[at] - exact[at])
    for at in by_loss[: steps - sum(parts)]:
        parts[at] += 1
    return parts


def shares(amounts: Sequence[float]) -> list[str]:
    """Return parts of a whole in whole percent; never 0 for a nonzero part, 100 only for the whole.

    >>> shares([1.0, 1.0, 1.0]), shares([500.0, 1.0, 0.0])
    (['34 %', '33 %', '33 %'], ['over 99 %', 'under 1 %', '0 %'])
    """
    found = rounded_parts(amounts, 100)
    alone = sum(amount > 0 for amount in amounts) < 2
    return [
        "under 1 %"
        if part == 0 and amount > 0
        else "over 99 %"
        if part == 100 and not alone
        else f"{part} %"
        for part, amount in zip(found, amounts, strict=True)
    ]


def parts_of_gpu_hours(hours: Sequence[float]) -> list[str]:
    """Return GPU-hours that add up to their sum, with the precision of ``gpu_hours``.

    >>> parts_of_gpu_hours([0.004, 0.004, 0.004]), parts_of_gpu_hours([12.25, 0.25, 0.02])
    (['0.01', 'under 0.01', 'under 0.01'], ['12.2', '0.3', 'under 0.1'])
    """
    whole = math.fsum(hours)
    places = 2 if whole < 10 else 1 if whole < 1000 else 0
    found = rounded_parts(hours, round(float(f"{whole:.{places}f}") * 10**places))
    return [
        f"under {10**-places:g}"
        if part == 0 and amount > 0
        else f"{part / 10**places:,.{places}f}"
        if amount > 0
        else "0"
        for part, amount in zip(found, hours, strict=True)
    ]
