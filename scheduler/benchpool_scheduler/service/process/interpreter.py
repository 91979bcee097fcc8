"""Interpreter settings that keep the loop responsive while a pass runs in another thread."""

from __future__ import annotations

import gc
import sys

SWITCH_S = 0.0005
"""Interval after which the pass thread hands the interpreter to the loop, in seconds.

The default is 5 ms. A read with several steps would wait that long at each step.
"""

THRESHOLDS = (10_000, 10, 1_000)
"""Garbage collection thresholds: new objects in small portions, all objects only rarely."""

MANY = 5_000
"""Minimum number of jobs for which memory is frozen against garbage collection."""


def prepare() -> None:
    """Apply the settings of the whole process."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*THRESHOLDS)


def settle(jobs: int) -> None:
    """Exempt the objects now in memory from all further garbage collections.

    A collection over the objects of 100,000 jobs would stop every thread for most of a second.
    """
    if jobs >= MANY:
        gc.collect(1)
        gc.freeze()
