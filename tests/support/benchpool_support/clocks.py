"""Clocks that a test advances."""

from __future__ import annotations

import time


class FakeClock:
    """Clock of epoch seconds that stands still until ``pass_s`` is called."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the current time."""
        return self._now

    def of_wall(self, at: float) -> float:
        """Return ``at`` unchanged, because scripted parts use the times of this clock."""
        return at

    def pass_s(self, seconds: float) -> None:
        """Advance the time."""
        self._now += seconds


class LeapingClock(FakeClock):
    """Real time for real processes, which a test can move ahead."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def now(self) -> float:
        """Return the current time."""
        return time.time() + super().now()

    def of_wall(self, at: float) -> float:
        """Return the time that a real process reported, by this clock."""
        return at + super().now()
