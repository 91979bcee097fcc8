"""Lets every Python of a job write its stacks at a signal, also while it hangs.

It lies as ``benchpool_stacks`` in the file that ``benchpool_scheduler.worker.job_package`` makes,
and is called at the start of each Python (``job_startup``). Python's own ``faulthandler`` writes.
What it writes lies in the memory of the process, under a name by which the scheduler finds it.
Standard library only, on every Python from 3.9.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal

NAME = "benchpool-stacks"
FROM_FIRST = 6
"""The signal, counted from the first for real time; as ``benchpool_scheduler.worker.stacks``."""

_own: list[int] = []


def arrange() -> None:
    """Let the signal write the stacks of all threads; again in each process that is forked."""
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
