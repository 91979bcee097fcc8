"""How far a start of Hub and scheduler has come, by what can be seen from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.app import start_status

STEP_S = 1.0
"""So much processor time is news. A Hub that only waits uses less in the time that it is given."""

MOST_S = 120.0
"""Processor time beyond this is no news: a start takes some seconds of it, what turns in circles
takes any amount."""


class StartProgress:
    """Tells what has happened since; going back and beginning anew is no news.

    Args:
        state: The state folder, where the scheduler says how far it is.
        log_size: Returns the bytes of the Hub's log. ``processor_s``: returns the processor time of
            the Hub and all that it has started; on a busy machine a start gets little of it, and
            says nothing for minutes.
    """

    def __init__(
        self, state: Path, log_size: Callable[[], int], processor_s: Callable[[], float]
    ) -> None:
        self._state = state
        self._log_size, self._processor_s = log_size, processor_s
        self._best = (0, 0)
        self._used_s = 0.0

    def look(self) -> object:
        """Return something else whenever something has happened."""
        now = start_status.read(self._state)
        if now is not None and now.failed is None:
            self._best = max(self._best, (now.step, now.done))
        self._used_s = max(self._used_s, min(self._processor_s(), MOST_S))
        log_size = None if now is not None else self._log_size()
        return self._best, log_size, self._used_s // STEP_S
