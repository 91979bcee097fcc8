"""Which cell runs, until the notebook reports its own progress.

Cells differ in how long they take, so that their number is no share of the work: a notebook of one
cell would stand at 0 % until its end.
"""

from __future__ import annotations

import os

from benchpool import checkpoint


class CellProgress:
    """Writes the progress file, and lets go of it once somebody else has written it."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._path = os.environ.get("BENCHPOOL_PROGRESS_FILE")
        self._last: tuple[int, int] | None = None

    def at(self, finished: int, number: int) -> None:
        """Report that ``finished`` code cells are done and the notebook's cell ``number`` runs."""
        if self._path is None or self._mark() != self._last:
            return
        which = f"cell {number}" + (f", {finished + 1} of {self._cells}" if self._cells > 1 else "")
        checkpoint.progress(None, which if finished < self._cells else "all cells ran")
        self._last = self._mark()

    def _mark(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path or "")
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
