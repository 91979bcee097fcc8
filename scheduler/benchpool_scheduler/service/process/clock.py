"""Where the service takes times from."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time in seconds since the epoch."""

    def now(self) -> float:
        """Return the present time; never less than an earlier answer of the same process."""

    def of_wall(self, at: float) -> float:
        """Return by this clock what somebody has just read from the machine's own."""


class SystemClock:
    """The wall clock as of the start of the process, carried on without steps.

    Durations inside the service are differences of ``now``. Setting the machine's clock must not
    stretch or shrink them, so only the start is taken from the wall clock; ``CLOCK_BOOTTIME``
    also counts the time that a machine sleeps.

    Args:
        wall: The machine's own clock, in seconds since the epoch.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._start = wall() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._start + time.clock_gettime(time.CLOCK_BOOTTIME)

    def of_wall(self, at: float) -> float:
        """Return by this clock what was just read from the machine's own, which may be set."""
        return at + self.now() - self._wall()


def moment(at: float) -> datetime:
    """Return epoch seconds as a time with zone.

    >>> moment(0).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(at, UTC)
