"""Opening of a shell inside a running worker, independent of the owner of its terminal."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from . import process_identity
from .supervisor import process_notes
from .supervisor_process import Program

CHUNK = 64 * 1024
"""Most bytes read from a terminal at once."""
LEAVES_S = 2.0
"""Timeout for a shell to end after its terminal was closed, in seconds."""


def entering(program: Program, supervisor: int, term: str, *groups: str) -> list[str]:
    """Return the command that becomes a shell inside a worker (``shell_entry``).

    Args:
        program: The program ``shell_entry``. ``supervisor``: pid of the worker's supervisor.
        groups: Folders of the cgroups that the shell joins.

    Raises:
        ProcessLookupError: The worker's command does not run.
    """
    pid, ticks = _leader_of(supervisor)
    return program.command(str(pid), str(ticks), term, *groups)


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set the size of a terminal. Raises OSError."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _leader_of(supervisor: int) -> tuple[int, int]:
    """Return the command's first process and its start time."""
    for pid, ticks in process_notes.tree(supervisor):
        fields = process_identity.stat_fields(pid)
        if fields is not None and os.getsid(pid) == pid:
            return pid, ticks
    raise ProcessLookupError(3, "the worker's command is not running")
