"""Processes of other starts: their command lines, and how to end them."""

from __future__ import annotations

import contextlib
import os
import select
import signal

import psutil

from benchpool_scheduler.worker.process_identity import identity


def command_line(pid: int) -> str:
    """Return a process's command line, joined by spaces; empty when it has ended."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


def end(pid: int, known: str, *, patience_s: float, kill: bool) -> bool:
    """End exactly the process that ``known`` identifies; return whether it has ended.

    Args:
        pid: Its process ID.
        known: Its recorded ``identity``.
        patience_s: Seconds to wait after SIGTERM.
        kill: Whether to use SIGKILL after that.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        # The handle refers to one process, so that check and signal cannot mean different ones.
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
    """Wait for the end of a process; return whether it ended. Works for any descriptor number."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def processor_s(pid: int) -> float:
    """Return the processor time of a process and its living descendants, in seconds.

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
