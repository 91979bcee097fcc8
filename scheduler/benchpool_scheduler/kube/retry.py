"""Retries: which answers are retried, and after which delay. Pure arithmetic (full jitter)."""

from __future__ import annotations

from dataclasses import dataclass

AGAIN = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses that do not depend on the request itself."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits for retries of a call.

    Attributes:
        total_s: Timeout from the first try on; 0 tries once.
        first_s: Upper limit of the first delay; it doubles up to ``longest_s``.
    """

    total_s: float = 20.0
    first_s: float = 0.1
    longest_s: float = 5.0


ONCE = RetryPolicy(total_s=0.0)


def wait_s(
    patience: RetryPolicy, tries: int, spent_s: float, luck: float, asked_s: float | None
) -> float | None:
    """Return the delay before the next try, or None to give up.

    Args:
        tries: Number of tries so far, at least 1. ``spent_s``: seconds since the first.
        luck: Random number in [0, 1).
        asked_s: Delay that the server requested with ``Retry-After``.

    >>> wait_s(RetryPolicy(), 1, 0.0, 0.5, None)
    0.05
    >>> wait_s(RetryPolicy(), 3, 1.0, 0.5, asked_s=2)
    2.2
    >>> wait_s(ONCE, 1, 0.0, 0.5, None)
    """
    bound = min(patience.longest_s, patience.first_s * 2 ** (tries - 1))
    wait = bound * luck if asked_s is None else asked_s + bound * luck
    return wait if spent_s + wait < patience.total_s else None


def asked_s(header: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header, or None.

    >>> asked_s("3"), asked_s("Wed, 21 Oct 2026"), asked_s(None)
    (3.0, None, None)
    """
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:
        return None
