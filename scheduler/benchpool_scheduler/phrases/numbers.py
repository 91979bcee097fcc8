"""Texts for numbers with nouns, shares, amounts of data, and GPUs.

>>> count(1, "GPU"), count(4, "GPU"), gpus_of_job(4, 2)
('1 GPU', '4 GPUs', '8 GPUs (2 × 4)')
"""

from __future__ import annotations

import math


def count(number: float, noun: str) -> str:
    """Return a number with its noun.

    >>> count(0, "job"), count(0.5, "GPU"), count(1e6, "job")
    ('0 jobs', '0.5 GPUs', '1000000 jobs')
    """
    figure = str(number) if isinstance(number, int) else f"{number:.3f}".rstrip("0").rstrip(".")
    return f"{figure} {noun}" if number == 1 else f"{figure} {noun}s"


def is_are(number: object) -> str:
    """Return the verb for a number.

    >>> is_are(1), is_are(0)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


def percent(fraction: float) -> str:
    """Return a fraction in whole percent, rounded down; 100 only for the whole.

    >>> percent(0.775), percent(0.999), percent(1.0)
    ('77 %', '99 %', '100 %')
    """
    return f"{percent_done(fraction)} %"


def gpu_use(activity: float | None, memory_gib: float | None) -> str:
    """Return the current use of GPUs; empty if it was not measured.

    >>> gpu_use(0.5, 3.0), gpu_use(0.0, None), gpu_use(None, 3.0)
    ('50 %, 3.0 GiB', '0 %', '')
    """
    if activity is None:
        return ""
    return share(activity) + ("" if memory_gib is None else f", {memory_gib:.1f} GiB")


def percent_done(fraction: float) -> int:
    """Return the number that ``percent`` shows.

    >>> percent_done(0.29)
    29
    """
    return max(0, min(100, math.floor(fraction * 100 + 1e-9)))


def share(fraction: float) -> str:
    """Return one of several shares in rounded percent; never 0 for a nonzero share.

    >>> share(0.775), share(0.002), share(0.999), share(0.0)
    ('78 %', 'under 1 %', 'over 99 %', '0 %')
    """
    near = round(fraction * 100)
    if near == 0 and fraction > 0:
        return "under 1 %"
    return "over 99 %" if near == 100 and fraction < 1 - 1e-9 else f"{near} %"


def gpu_hours(hours: float) -> str:
    """Return GPU-hours without the unit, with a precision that depends on the amount.

    >>> gpu_hours(0.0), gpu_hours(0.004), gpu_hours(0.25), gpu_hours(12.345), gpu_hours(4300)
    ('0', 'under 0.01', '0.25', '12.3', '4,300')
    """
    if hours < 0.01:
        return "under 0.01" if hours > 0 else "0"
    return f"{hours:,.2f}" if hours < 10 else f"{hours:,.1f}" if hours < 1000 else f"{hours:,.0f}"


def energy(watt_hours: float) -> str:
    """Return an energy with a readable unit.

    >>> energy(12.34), energy(1234.0)
    ('12.3 Wh', '1.23 kWh')
    """
    return f"{watt_hours:.1f} Wh" if watt_hours < 1000 else f"{watt_hours / 1000:.2f} kWh"


def ordinal(number: int) -> str:
    """Return a queue position as an ordinal number.

    >>> ordinal(1), ordinal(12), ordinal(23)
    ('1st', '12th', '23rd')
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def gpus_of_job(gpus: int, workers: int) -> str:
    """Return the GPUs of a whole job; ``gpus`` is the number of one worker."""
    if workers == 1:
        return count(gpus, "GPU")
    return f"{count(gpus * workers, 'GPU')} ({workers} × {gpus})"


def data_size(count: int) -> str:
    """Return an amount of data with a readable unit.

    >>> data_size(5), data_size(3 * 1024 * 1024)
    ('5 bytes', '3.0 MiB')
    """
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"
