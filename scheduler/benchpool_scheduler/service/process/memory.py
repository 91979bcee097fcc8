"""Memory that was freed goes back to the machine."""

from __future__ import annotations

import ctypes
import gc


def give_back_memory(collect: bool = False) -> None:
    """Return freed memory to the system; glibc keeps it else.

    Args:
        collect: Look for what nobody uses any more first; that takes a moment.

    >>> give_back_memory()
    """
    if collect:
        gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, others need none
    if trim is not None:
        trim(0)
