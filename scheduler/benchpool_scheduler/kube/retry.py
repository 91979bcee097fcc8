"""Which answers are asked for again, and after how long: pure arithmetic (full jitter)."""

from __future__ import annotations

from dataclasses import dataclass

AGAIN = frozenset({408, 429, 500, 502, 503, 504})
"""Answers that say nothing about the request itself."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a call is repeated.

    Attributes:
        total_s: From the first try on; 0 tries once.
        first_s: Bound of the first wait; it doubles up to ``longest_s``.
    """

    total_s: float = 20.0
    first_s: float = 0.1
    longest_s: float = 5.0


ONCE = RetryPolicy(total_s=0.0)


def wait_s(
    patience: RetryPolicy, tries: int, spent_s: float, luck: float, asked_s: float | None
) -> float | None:
    """Return for how long to wait before the next try, None to give up.

    Args:
        tries: Tries made so far, at least 1. ``spent_s``: seconds since the first.
        luck: Random number in [0, 1).
        asked_s: What the server asked for with ``Retry-After``.

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
    """Return the seconds of a ``Retry-After``, None when there are none.

    >>> asked_s("3"), asked_s("Wed, 21 Oct 2026"), asked_s(None)
    (3.0, None, None)
    """
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:
        return None
