"""Processes of other starts: what they run, how to end them."""

from __future__ import annotations

import contextlib
import os
import select
import signal

import psutil

from benchpool_scheduler.worker.process_identity import identity


def command_line(pid: int) -> str:
    """Return a process's command line with blanks between the words; empty when it has ended."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


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
            if ended_within(patience_s, handle):
                return True
        return False
    except ProcessLookupError:
        return True
    finally:
        os.close(handle)


def ended_within(seconds: float, handle: int) -> bool:
    """Wait for the end of the process of this handle; however high its number is."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def processor_s(pid: int) -> float:
    """Return the processor time that a process and its living descendants have used, in seconds.

    >>> import os
    >>> processor_s(os.getpid()) > 0
    True
    """
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0.0
    used = 0.0
    for one in family:
        with contextlib.suppress(psutil.Error):
            used += sum(one.cpu_times()[:2])
    return used
