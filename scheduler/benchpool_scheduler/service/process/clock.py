"""Where the service takes times from."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time in seconds since the epoch."""

    def now(self) -> float:
        """Return the present time; never less than an earlier answer of the same process."""


class SystemClock:
    """The wall clock as of the start of the process, carried on without steps.

    Durations inside the service are differences of ``now``. Setting the machine's clock must not
    stretch or shrink them, so only the start is taken from the wall clock; ``CLOCK_BOOTTIME``
    also counts the time that a machine sleeps.
    """

    def __init__(self) -> None:
        self._start = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._start + time.clock_gettime(time.CLOCK_BOOTTIME)


def moment(at: float) -> datetime:
    """Return epoch seconds as a time with zone.

    >>> moment(0).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(at, UTC)
