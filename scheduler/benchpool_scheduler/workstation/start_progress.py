"""Progress of a start of Hub and scheduler, as observed from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.app import start_status

STEP_S = 1.0
"""Processor time that counts as progress, in seconds; a Hub that only waits uses less."""

MOST_S = 120.0
"""Processor time beyond which more is no progress, in seconds: an endless loop uses any amount."""


class StartProgress:
    """Detector of progress; a step back or a restart is no progress.

    Args:
        state: The state folder, in which the scheduler reports its progress.
        log_size: Returns the size of the Hub's log. ``processor_s``: returns the processor time of
            the Hub and its children; on a busy machine a start gets little of it, and reports
            nothing for minutes.
    """

    def __init__(
        self, state: Path, log_size: Callable[[], int], processor_s: Callable[[], float]
    ) -> None:
        self._state = state
        self._log_size, self._processor_s = log_size, processor_s
        self._best = (0, 0)
        self._used_s = 0.0

    def look(self) -> object:
        """Return a value that changes with each progress."""
        now = start_status.read(self._state)
        if now is not None and now.failed is None:
            self._best = max(self._best, (now.step, now.done))
        self._used_s = max(self._used_s, min(self._processor_s(), MOST_S))
        log_size = None if now is not None else self._log_size()
        return self._best, log_size, self._used_s // STEP_S
