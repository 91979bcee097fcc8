"""Timing of saves in framework callbacks: when asked to pause, and every ``minutes``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from benchpool.checkpoint import notices, votes

PAUSED = 75
"""Exit status of a paused program."""


class Pace:
    """Decides after each step whether to save; the answers are the same on all ranks.

    Args:
        minutes: Save interval in minutes.
        clock: Clock of the interval, in seconds.
    """

    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = minutes * 60.0, clock
        self._saved_at = clock()
        self.stopping = False

    def save_now(self) -> bool:
        """Return whether to save after this step, and set ``stopping`` if it is the last one."""
        if notices.directory() is None:
            return False
        notices.asked()
        due = self._clock() - self._saved_at >= self._every_s
        self.stopping, save = votes.stop_or_save(due)
        return self.stopping or save

    def saved(self) -> None:
        """Restart the save interval."""
        self._saved_at = self._clock()


def leave_paused() -> NoReturn:
    """End the program as paused.

    Raises:
        SystemExit: Always, with status 75.
    """
    raise SystemExit(PAUSED)
