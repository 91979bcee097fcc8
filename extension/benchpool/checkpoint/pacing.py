"""When the callbacks of frameworks save: when asked to pause, and every so many minutes."""

from __future__ import annotations

import time
from typing import NoReturn

from benchpool.checkpoint import notices, votes

PAUSED = 75
"""The exit status of a program that was paused."""


class Pace:
    """Asked after each step of a training; the answers are the same on all ranks."""

    def __init__(self, minutes: float) -> None:
        self._every_s = minutes * 60.0
        self._saved_at = time.monotonic()
        self.stopping = False

    def save_now(self) -> bool:
        """Say whether to save after this step; ``stopping`` is then true where it is the last."""
        if notices.directory() is None:
            return False
        notices.asked()
        due = time.monotonic() - self._saved_at >= self._every_s
        self.stopping, save = votes.stop_or_save(due)
        return self.stopping or save

    def saved(self) -> None:
        """Begin to count the minutes anew."""
        self._saved_at = time.monotonic()


def leave_paused() -> NoReturn:
    """End the program as paused.

    Raises:
        SystemExit: With status 75, always.
    """
    raise SystemExit(PAUSED)
