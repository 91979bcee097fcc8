"""Time of the next message to one user: the first is sent immediately, later ones in bundles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class SendingPace:
    """Minimum seconds between two messages to one user, and maximum messages per hour."""

    bundle_s: float = 600.0
    per_hour: int = 12


def earliest(sent: Sequence[float], pace: SendingPace, now: float) -> float:
    """Return when the next message may be sent, in epoch seconds.

    Args:
        sent: Times of the latest messages, the oldest first. Times in the future, from before the
            clock was set back, do not count.

    >>> pace = SendingPace(bundle_s=600, per_hour=3)
    >>> earliest([], pace, 5000.0)
    5000.0
    >>> earliest([4900.0], pace, 5000.0)
    5500.0
    >>> earliest([1800.0, 2400.0, 4900.0], pace, 5000.0)
    5500.0
    >>> earliest([4000.0, 4100.0, 4200.0], pace, 5000.0)
    7600.0
    >>> earliest([9000.0], pace, 5000.0)
    5000.0
    """
    known = kept(sent, now)
    found = now
    if known:
        found = max(found, known[-1] + pace.bundle_s)
    if len(known) >= pace.per_hour:
        found = max(found, known[-pace.per_hour] + HOUR_S)
    return found


def kept(sent: Sequence[float], now: float) -> list[float]:
    """Return the times that still count: within the last hour, and not in the future."""
    return [it for it in sent if now - HOUR_S < it <= now]
