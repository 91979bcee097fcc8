"""The children of the agent, which is process 1 of its pod and reaps whatever ends there.

Any wait may meet any end, so all waiting is done here; ends that somebody will ask for are kept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable


class Children:
    """Starts children, reaps, and tells how those ended; for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._codes: dict[int, int | None] = {}

    def begin(self, start: Callable[[], int]) -> int:
        """Start a child by what returns its pid, and keep its end. Errors: those of the start."""
        with self._lock:  # nobody reaps it before it is known
            pid = start()
            self._codes[pid] = None
            return pid

    def code(self, pid: int) -> int | None:
        """Return how a child ended: its exit code, or minus its signal; None while it runs."""
        with self._lock:
            if self._codes[pid] is None:
                self._reap()
            return self._codes[pid]

    def kill_group(self, pid: int) -> None:
        """Kill a child that has not ended, with its process group."""
        with self._lock:  # until it is reaped its number is its own
            if self._codes[pid] is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)

    def _reap(self) -> None:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self._codes:
                    self._codes[pid] = os.waitstatus_to_exitcode(status)
        except ChildProcessError:  # there are none at all
            for pid, code in self._codes.items():
                if code is None:
                    self._codes[pid] = -signal.SIGKILL
