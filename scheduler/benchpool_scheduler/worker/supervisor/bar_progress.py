"""Progress of a program that reports none, from the progress bars in its output."""

from __future__ import annotations

import contextlib
import os

from .. import progress_bars, records

EVERY_S = 1.0


class BarProgress:
    """Writer of a worker's progress file, until another process has written the file.

    Args:
        exchange: The folder of the file.
    """

    def __init__(self, exchange: str) -> None:
        self._exchange = exchange
        self._bars = progress_bars.ProgressBars()
        self._written: tuple[int, int] | None = None
        self._next_at = 0.0

    def take(self, data: bytes, now: float, uid: int | None) -> None:
        """Process the next piece of output; errors of writing are ignored.

        Args:
            now: Seconds of a clock. ``uid``: owner of the file, if it differs from this process.
        """
        bar = self._bars.take(data, now)
        if bar is None or (now < self._next_at and bar.full < 1.0):
            return
        self._next_at = now + EVERY_S
        if self._mark() != self._written:
            return
        report: dict[str, object] = {
            "fraction": bar.fraction(now),
            "text": bar.text,
            "metrics": {},
        }
        with contextlib.suppress(OSError):
            records.write(self._exchange, records.PROGRESS, report, durable=False, uid=uid)
            self._written = self._mark()

    def _mark(self) -> tuple[int, int] | None:
        """Return a value that changes when the file is written again, or None without a file."""
        try:
            facts = os.lstat(os.path.join(self._exchange, records.PROGRESS))
        except OSError:
            return None
        return facts.st_ino, facts.st_mtime_ns
