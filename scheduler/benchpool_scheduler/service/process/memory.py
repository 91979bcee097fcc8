"""Return of freed memory to the system."""

from __future__ import annotations

import ctypes
import gc


def give_back_memory(collect: bool = False) -> None:
    """Return freed memory to the system, which glibc would keep otherwise.

    Args:
        collect: Run a garbage collection first, which takes a moment.

    >>> give_back_memory()
    """
    if collect:
        gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has and needs it
    if trim is not None:
        trim(0)
