"""Identity of a process: a pid alone is not enough, because it is reused.

A process is identified by boot ID, pid and start time in clock ticks since boot. A zombie still has
all three, and counts as gone. It does not count as gone while other threads of it live, because
they hold its files and its memory, including that of GPUs.
"""

from __future__ import annotations

import os

from . import machine_faults

PROC = "/proc"


def boot_id() -> str:
    """Return the kernel's ID of this boot, or an empty text if unknown."""
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def stat_fields(pid: int) -> list[bytes] | None:
    """Return ``/proc/PID/stat`` from the state on, or None if there is no such process.

    The name in parentheses may contain any character, so the fields after its last ``)`` are taken.

    Raises:
        OSError: The machine cannot answer now (``machine_faults``); the process may exist.
    """
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError as error:
        if machine_faults.number_of(error) is not None:
            raise
        return None


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot, or None if it is gone."""
    fields = stat_fields(pid)
    if fields is None or (fields[0] in (b"Z", b"X") and int(fields[17]) <= 1):
        return None
    return int(fields[19])


def identity(pid: int) -> str | None:
    """Return the identity of a living process as one word, or None if it is gone.

    >>> import os
    >>> identity(os.getpid()) == f"{boot_id()}:{os.getpid()}:{start_ticks(os.getpid())}"
    True
    """
    ticks = start_ticks(pid)
    return None if ticks is None else f"{boot_id()}:{pid}:{ticks}"


def open_process(pid: int, ticks: object) -> int | None:
    """Return a descriptor (pidfd) of the process that began at ``ticks``, or None if it is gone.

    The start time is compared after the descriptor is open. From then on the descriptor means this
    process, even if the pid is reused. The caller closes it.

    Raises:
        OSError: The machine cannot answer now (``machine_faults``); the process may live.
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
