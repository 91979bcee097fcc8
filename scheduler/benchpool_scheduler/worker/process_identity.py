"""Which process a number means: a pid alone is soon used again.

A process is (boot id, pid, start time in clock ticks since boot). A zombie still has all three, so
it counts as gone; but not while other threads of it live, which hold its files and its memory, that
of GPUs included.
"""

from __future__ import annotations

import os

from . import machine_faults

PROC = "/proc"


def boot_id() -> str:
    """Return the kernel's id of this start of the machine; empty where unknown."""
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def stat_fields(pid: int) -> list[bytes] | None:
    """Return ``/proc/PID/stat`` from the state on, or None when there is no such process.

    The name in parentheses may hold anything, so what follows its last ``)`` is taken.

    Raises:
        OSError: The machine cannot tell now (``machine_faults``): it may well be there.
    """
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError as error:
        if machine_faults.number_of(error) is not None:
            raise
        return None


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; None when it is gone."""
    fields = stat_fields(pid)
    if fields is None or (fields[0] in (b"Z", b"X") and int(fields[17]) <= 1):
        return None
    return int(fields[19])


def identity(pid: int) -> str | None:
    """Return the identity of a living process as one word; None when it is gone.

    >>> import os
    >>> identity(os.getpid()) == f"{boot_id()}:{os.getpid()}:{start_ticks(os.getpid())}"
    True
    """
    ticks = start_ticks(pid)
    return None if ticks is None else f"{boot_id()}:{pid}:{ticks}"


def open_process(pid: int, ticks: object) -> int | None:
    """Return a descriptor (pidfd) of the process that began at ``ticks``; None when it is gone.

    Its start is compared after the descriptor is open: from then on the descriptor means this
    process for good, whatever becomes of the number. The caller closes it.

    Raises:
        OSError: The machine cannot tell now (``machine_faults``): it may well live.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        if machine_faults.number_of(error) is not None:
            raise
        return None
    try:
        if ticks is not None and start_ticks(pid) == ticks:
            found, pidfd = pidfd, -1
            return found
    finally:
        if pidfd >= 0:
            os.close(pidfd)
    return None
