"""Source of times for the service."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time in seconds since the epoch."""

    def now(self) -> float:
        """Return the present time, never less than an earlier value in the same process."""

    def of_wall(self, at: float) -> float:
        """Convert a time just read from the system clock to this clock."""


class SystemClock:
    """The wall clock at the start of the process, continued without steps.

    Durations inside the service are differences of ``now``. Setting the system clock must not
    change them, so only the start is taken from the wall clock. ``CLOCK_BOOTTIME`` also counts the
    time in which the machine sleeps.

    Args:
        wall: The system clock, in seconds since the epoch.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._start = wall() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._start + time.clock_gettime(time.CLOCK_BOOTTIME)

    def of_wall(self, at: float) -> float:
        """Convert a time just read from the system clock, which may be set, to this clock."""
        return at + self.now() - self._wall()


def moment(at: float) -> datetime:
    """Return epoch seconds as a time in UTC.

    >>> moment(0).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(at, UTC)
