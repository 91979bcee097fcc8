"""How the process is set up so that its loop answers while a pass runs in another thread."""

from __future__ import annotations

import gc
import sys

SWITCH_S = 0.0005
"""The thread of passes gives the interpreter to the loop within this time, instead of 5 ms: a read
that is served in several steps would wait that long at each of them."""

THRESHOLDS = (10_000, 10, 1_000)
"""Collections look at new objects in small portions, and at everything only rarely."""

MANY = 5_000
"""From this many jobs on it is worth telling the collector that they stay."""


def prepare() -> None:
    """Set what holds for the whole process."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*THRESHOLDS)


def settle(jobs: int) -> None:
    """Take what is in memory now out of all further collections: it stays.

    A collection over the objects of 100,000 jobs would stop every thread for most of a second.
    """
    if jobs >= MANY:
        gc.collect(1)
        gc.freeze()
