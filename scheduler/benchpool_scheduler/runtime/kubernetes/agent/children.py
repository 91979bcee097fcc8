"""Child processes of the agent, which is process 1 of its pod and reaps all orphans.

A wait may return any process that ended, so all waiting is done here. The exit codes of children
are kept until they are requested.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable


class Children:
    """Starts and reaps child processes and records their exit codes; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._codes: dict[int, int | None] = {}

    def begin(self, start: Callable[[], int]) -> int:
        """Start a child and record its end. ``start`` returns its pid; its errors propagate."""
        with self._lock:  # it is not reaped before it is registered
            pid = start()
            self._codes[pid] = None
            return pid

    def code(self, pid: int) -> int | None:
        """Return the exit code of a child, or minus its signal; None while it runs."""
        with self._lock:
            if self._codes[pid] is None:
                self._reap()
            return self._codes[pid]

    def kill_group(self, pid: int) -> None:
        """Kill the process group of a child that has not ended."""
        with self._lock:  # its pid cannot be reused until it is reaped
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
        except ChildProcessError:  # there are no children left
            for pid, code in self._codes.items():
                if code is None:
                    self._codes[pid] = -signal.SIGKILL
