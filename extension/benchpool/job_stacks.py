"""Signal handler that makes every Python of a job write its stacks, even while it hangs.

It is ``benchpool_stacks`` in the file that ``benchpool_scheduler.worker.job_package`` makes, and is
called at the start of each Python (``job_startup``). Python's own ``faulthandler`` writes the
stacks into memory of the process, under a name by which the scheduler finds them. Standard library
only, on every Python from 3.9.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal

NAME = "benchpool-stacks"
FROM_FIRST = 6
"""Offset of the signal from SIGRTMIN; the same as in ``benchpool_scheduler.worker.stacks``."""

_own: list[int] = []


def arrange() -> None:
    """Install the signal handler that writes the stacks of all threads, also after each fork."""
    if hasattr(os, "memfd_create"):
        _again()
        os.register_at_fork(after_in_child=_again)


def _again() -> None:
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        file = os.memfd_create(NAME, os.MFD_CLOEXEC)
        faulthandler.register(signal.SIGRTMIN + FROM_FIRST, file, all_threads=True)
        for before in _own:
            os.close(before)
        _own[:] = [file]
