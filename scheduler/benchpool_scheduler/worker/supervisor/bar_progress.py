"""The progress of a program that reports none: from the progress bars that it draws."""

from __future__ import annotations

import contextlib
import os

from .. import progress_bars, records

EVERY_S = 1.0


class BarProgress:
    """Writes the progress file of a worker until somebody else has written it.

    Args:
        exchange: The folder of the file.
    """

    def __init__(self, exchange: str) -> None:
        self._exchange = exchange
        self._bars = progress_bars.ProgressBars()
        self._written: tuple[int, int] | None = None
        self._next_at = 0.0

    def take(self, data: bytes, now: float, uid: int | None) -> None:
        """Look at the next piece of output; a file that cannot be written is not.

        Args:
            now: Seconds of a clock. ``uid``: who owns the file, when it is not us.
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
        """Return what is another when somebody has written the file; None while there is none."""
        try:
            facts = os.lstat(os.path.join(self._exchange, records.PROGRESS))
        except OSError:
            return None
        return facts.st_ino, facts.st_mtime_ns
