"""Processes of other starts: who they are, whether they live, how to end them."""

from __future__ import annotations

import os
import select
import signal
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


def identity(pid: int) -> str | None:
    """Return the identity of a living process (boot, pid, start time); None when it has ended.

    >>> identity(os.getpid()) == identity(os.getpid())
    True
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold anything, so fields are counted after the last one.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot_id()}:{pid}:{fields[19]}"


def command_line(pid: int) -> str:
    """Return a process's command line with blanks between the words; empty when it has ended."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()


def end(pid: int, known: str, *, patience_s: float, kill: bool) -> bool:
    """End the process that ``known`` identifies, and no other; return whether it is gone.

    Args:
        pid: Its number.
        known: Its ``identity`` as it was noted.
        patience_s: Seconds between SIGTERM and giving up, or SIGKILL.
        kill: Whether to use SIGKILL in the end.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        # The handle is on one process for good, so that the check and the signal mean the same.
        if identity(pid) != known:
            return True
        for number in (signal.SIGTERM, signal.SIGKILL) if kill else (signal.SIGTERM,):
            signal.pidfd_send_signal(handle, number)
            readable, _, _ = select.select([handle], [], [], patience_s)
            if readable:
                return True
        return False
    except ProcessLookupError:
        return True
    finally:
        os.close(handle)
