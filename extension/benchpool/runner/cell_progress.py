"""Progress of a run, by its cells and progress bars, until the notebook reports its own progress.

Cells take different times, so their number is no share of the work: a notebook of one cell would
stay at 0 % until its end. A bar counts as a share of the work only in the last cell.
"""

from __future__ import annotations

import os

from benchpool import checkpoint
from benchpool_scheduler.worker.progress_bars import ProgressBars

EVERY_S = 1.0


class CellProgress:
    """Writer of the progress file; it stops once another writer has changed the file."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._path = os.environ.get("BENCHPOOL_PROGRESS_FILE")
        self._last: tuple[int, int] | None = None
        self._which = ""
        self._is_last = False
        self._bars = ProgressBars()
        self._next_at = 0.0

    def at(self, finished: int, number: int) -> None:
        """Report that ``finished`` code cells are done and the notebook's cell ``number`` runs."""
        of = f", {finished + 1} of {self._cells}" if self._cells > 1 else ""
        self._which = f"cell {number}{of}" if finished < self._cells else "all cells ran"
        self._is_last = finished == self._cells - 1
        self._bars = ProgressBars()
        self._report(None, self._which)

    def drawn(self, text: str, now: float) -> None:
        """Search for progress bars in the output of the running cell. ``now``: clock in seconds."""
        bar = self._bars.take(text.encode("utf-8", "replace"), now)
        if bar is None or (now < self._next_at and bar.full < 1.0):
            return
        self._next_at = now + EVERY_S
        self._report(bar.fraction(now) if self._is_last else None, f"{self._which}: {bar.text}")

    def _report(self, fraction: float | None, text: str) -> None:
        if self._path is None or self._mark() != self._last:
            return
        checkpoint.progress(fraction, text)
        self._last = self._mark()

    def _mark(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path or "")
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
