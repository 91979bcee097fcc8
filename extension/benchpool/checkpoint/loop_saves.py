"""Saves of a program's loops: when they happen, and how (in a thread if possible)."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from benchpool.checkpoint import carried, commits, saved_loops, votes
from benchpool.checkpoint.saved_loops import SavedLoops

SHARE = 0.05
"""Maximum share of the time spent in periodic saves; the next save is postponed to keep it."""
_CGROUP = Path("/sys/fs/cgroup")


class Saves:
    """Saves of this process into a folder; ``last`` is the one that it started from."""

    def __init__(self, folder: Path, last: Path | None) -> None:
        self._folder, self._last = folder, last
        self._at = time.monotonic()
        self._took_s = 0.0
        self._writer: threading.Thread | None = None

    def due(self, every_s: float) -> bool:
        """Return whether a save is due: ``every_s`` has passed, and saves stay within ``SHARE``."""
        wait_s = max(every_s, self._took_s / SHARE)
        return time.monotonic() - self._at >= wait_s

    def save(self, saved: SavedLoops, step: int, *, wait: bool) -> None:
        """Write a save, if ``wait`` is false in a thread (with one rank, if memory allows a copy).

        A failed save is reported on standard error and does not end the training.
        """
        self.finish()
        begun = time.monotonic()
        if not wait and votes.world_size() == 1 and _fits(carried.size(saved.states)):
            beside = saved._replace(states=carried.copied(saved.states))
            self._writer = threading.Thread(target=self._write, args=(beside, step))
            self._writer.start()
        else:
            self._write(saved, step)
        self._at = time.monotonic()
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


def _fits(size: int) -> bool:
    """Return whether a copy takes at most half of the free memory."""
    left = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return size <= left / 2
    return size <= (left if limit == "max" else min(left, int(limit) - used)) / 2
