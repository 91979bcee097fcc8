"""A clock that moves only when a test says so."""

from __future__ import annotations


class FakeClock:
    """Epoch seconds that stand still until ``pass_s`` is called."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the present time."""
        return self._now

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
