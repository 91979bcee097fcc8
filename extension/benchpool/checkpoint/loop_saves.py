"""Saves of a program's loops: when they happen, and how (in a thread if possible)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchpool.checkpoint import carried, commits, free_memory, saved_loops, votes
from benchpool.checkpoint.saved_loops import SavedLoops

SHARE = 0.05
"""Maximum share of the time spent in periodic saves; the next save is postponed to keep it."""
MEMORY_SHARE = 0.5
"""Maximum share of the free memory that the copy of a save may take."""


class Saves:
    """Saves of this process into a folder.

    Args:
        last: The save that this process started from, or None.
        clock: Clock of the interval between saves, in seconds.
    """

    def __init__(
        self, folder: Path, last: Path | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder, self._last, self._clock = folder, last, clock
        self._at = clock()
        self._took_s = 0.0
        self._writer: threading.Thread | None = None

    def due(self, every_s: float) -> bool:
        """Return whether a save is due: ``every_s`` has passed, and saves stay within ``SHARE``."""
        wait_s = max(every_s, self._took_s / SHARE)
        return self._clock() - self._at >= wait_s

    def save(self, collect: Callable[[], SavedLoops], step: int, *, wait: bool) -> None:
        """Write what ``collect`` returns.

        With one rank, and if a copy fits into memory, a thread writes it, unless ``wait`` is true.
        A failed save is reported on standard error and does not end the training.
        """
        begun = self._clock()
        self.finish()
        saved = collect()
        if not wait and votes.world_size() == 1 and _fits(saved):
            beside = saved._replace(states=carried.copied(saved.states))
            self._writer = threading.Thread(target=self._write, args=(beside, step))
            self._writer.start()
        else:
            self._write(saved, step)
        self._at = self._clock()
        self._took_s = self._at - begun

    def finish(self) -> None:
        """Wait until the running save is complete."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def _write(self, saved: SavedLoops, step: int) -> None:
        try:
            with commits.commit(step, together=votes.world_size() > 1) as aside:
                saved_loops.write(aside, votes.rank(), saved._replace(before=self._last))
            self._last = commits.newest(self._folder)
        except Exception as failed:
            print(
                f"benchpool: saving step {step} failed ({type(failed).__name__}: {failed}). "
                "Earlier checkpoints stay valid.",
                file=sys.stderr,
                flush=True,
            )


def _fits(saved: SavedLoops) -> bool:
    return carried.size(saved.states) <= MEMORY_SHARE * free_memory.available()
