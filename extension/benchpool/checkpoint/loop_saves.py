"""When a program's loops are saved, and how: beside the training where that can be."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from benchpool.checkpoint import carried, commits, saved_loops, votes
from benchpool.checkpoint.saved_loops import SavedLoops

SHARE = 0.05
"""What part of the time saves at intervals may take at most: the next is put off for that."""
_CGROUP = Path("/sys/fs/cgroup")


class Saves:
    """The saves of this process into a folder; ``last`` is the one that it began with."""

    def __init__(self, folder: Path, last: Path | None) -> None:
        self._folder, self._last = folder, last
        self._at = time.monotonic()
        self._took_s = 0.0
        self._writer: threading.Thread | None = None

    def due(self, every_s: float) -> bool:
        """Say whether so much time has passed since the last save."""
        wait_s = max(every_s, self._took_s / SHARE)
        return time.monotonic() - self._at >= wait_s

    def save(self, saved: SavedLoops, step: int, *, wait: bool) -> None:
        """Write a save; in a thread where nobody has to wait for it and the memory allows it.

        One that fails is told on standard error and ends no training.
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
        """Wait until the save that is being written is complete."""
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
                "What was saved before still counts.",
                file=sys.stderr,
                flush=True,
            )


def _fits(size: int) -> bool:
    """Say whether a copy takes at most half of the memory that is left."""
    left = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return size <= left / 2
    return size <= (left if limit == "max" else min(left, int(limit) - used)) / 2
