"""Clocks that a test moves."""

from __future__ import annotations

import time


class FakeClock:
    """Epoch seconds that stand still until ``pass_s`` is called."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the present time."""
        return self._now

    def of_wall(self, at: float) -> float:
        """Return the same: what is scripted tells this clock's times."""
        return at

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


class LeapingClock(FakeClock):
    """The real time, for real processes, which jumps ahead when a test says so."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def now(self) -> float:
        """Return the present time."""
        return time.time() + super().now()

    def of_wall(self, at: float) -> float:
        """Return what real processes tell, by this clock."""
        return at + super().now()
