"""Pause of Python's garbage collector during an analysis."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the automatic garbage collector for a short computation.

    An analysis allocates many objects that live on. Each full collection would visit all of them
    and take longer than the analysis. Of two threads that overlap, the first ends the pause.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
