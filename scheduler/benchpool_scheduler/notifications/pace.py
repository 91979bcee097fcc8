"""When the next message to one person goes: the first at once, what follows in bundles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class SendingPace:
    """Least seconds between two messages to one person, and most messages in an hour."""

    bundle_s: float = 600.0
    per_hour: int = 12


def earliest(sent: Sequence[float], pace: SendingPace, now: float) -> float:
    """Return when the next message may go, epoch seconds.

    Args:
        sent: When the latest went, the oldest first. Times in the future, from before the clock
            was put back, do not count.

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
    """Return those that still count: of the last hour, and none in the future."""
    return [it for it in sent if now - HOUR_S < it <= now]
