"""Which process a number means: a pid alone may be reused, or name one that has ended.

Identity of a process: boot id, pid, start time in ticks. A zombie has ended.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PROC = Path("/proc")


@cache
def boot_id() -> str:
    """Return what tells this start of the machine from any other; empty where unknown."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_ticks(pid: int) -> int | None:
    """Return when a living process began, in clock ticks since boot; None when there is none.

    >>> import os
    >>> start_ticks(os.getpid()) == start_ticks(os.getpid())
    True
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold anything, so fields are counted after the last one.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def identity(pid: int) -> str | None:
    """Return the identity of a living process as one word, None when there is none."""
    ticks = start_ticks(pid)
    return None if ticks is None else f"{boot_id()}:{pid}:{ticks}"
