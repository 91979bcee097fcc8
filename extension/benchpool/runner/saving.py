"""The executed copy on disk: always complete, and usually at most a second old."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import nbformat

from benchpool.runner.heading import with_heading

LEAST_S = 1.0
BUSY_SHARE = 0.05
"""Maximum share of the time spent saving, so that a large notebook is saved less often."""


class Copy:
    """Executed copy that is saved after changes. Delayed saves need a running event loop.

    Args:
        heading: Text of its first cell in Markdown; None adds none.
    """

    def __init__(
        self, notebook: nbformat.NotebookNode, path: Path, heading: str | None = None
    ) -> None:
        self._notebook = notebook
        self._heading = heading
        self._path = path
        self._next_at = 0.0
        self._later: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        """Save now, or as soon as the minimum interval has passed."""
        if self._later is not None:
            return
        wait = self._next_at - time.monotonic()
        if wait <= 0:
            self.save()
        else:
            self._later = asyncio.get_running_loop().call_later(wait, self.save)

    def save(self) -> None:
        """Save now. A full disk is logged at each save and ends nothing."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        began = time.monotonic()
        try:
            self._write()
        except OSError as failed:
            print(f"benchpool: the executed copy cannot be saved: {failed}", flush=True)
        ended = time.monotonic()
        self._next_at = ended + max(LEAST_S, (ended - began) / BUSY_SHARE)

    def _write(self) -> None:
        aside = self._path.with_name(f".{self._path.name}.part")
        shown = self._notebook
        if self._heading is not None:
            shown = with_heading(shown, self._heading)
        aside.write_text(nbformat.v4.writes(shown), "utf-8")
        os.replace(aside, self._path)
