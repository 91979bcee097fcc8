"""Words and numbers in the sentences that people read."""

from __future__ import annotations

from benchpool_scheduler.core.jobs.amounts import UNITS

Number = int | float | str | None


def count(number: int | float, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "GPU"), count(2, "GPU")
    ('1 GPU', '2 GPUs')
    """
    return f"{number} {noun}" if number == 1 else f"{number:g} {noun}s"


def is_are(number: int) -> str:
    """Return the verb for a number.

    >>> is_are(1), is_are(0)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


def plain(amount: int, resource: int) -> int | float:
    """Return an amount in the reader's units.

    >>> plain(2000, 0), plain(2500, 1), plain(1536, 2)
    (2, 2.5, 1.5)
    """
    whole, rest = divmod(amount, UNITS[resource])
    return amount / UNITS[resource] if rest else whole


def measured(amount: int, resource: int) -> str:
    """Return an amount of a resource with its unit.

    >>> measured(2000, 0), measured(2500, 1), measured(1536, 2)
    ('2 GPUs', '2.5 CPUs', '1.5 GiB of memory')
    """
    if resource == 0:
        return count(plain(amount, 0), "GPU")
    return f"{plain(amount, resource):g} {'CPUs' if resource == 1 else 'GiB of memory'}"


def within(seconds: float) -> str:
    """Return a bound on a time from now, rounded up so far that it stands for a while.

    >>> within(7), within(61), within(2400), within(5000), within(100_000), within(900_000)
    ('10 s', '2 min', '40 min', '85 min', '28 h', '11 days')
    """
    steps = ((10, "s", 1, 60), (60, "min", 60, 600), (300, "min", 60, 7200), (3600, "h", 3600, 2e5))
    for step, unit, size, most in steps:
        if seconds <= most:
            return f"{max(1, -int(-seconds // step)) * step // size} {unit}"
    return f"{-int(-seconds // 86_400)} days"
