"""A shell inside the worker of this pod, and its terminal."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import TYPE_CHECKING

from benchpool_scheduler.worker import shell_terminal

if TYPE_CHECKING:
    from .children import Children

LOOK_S = 0.02


class ShellTerminal:
    """A shell and its terminal. One thread reads and closes, another one writes.

    Args:
        command: Command line of the shell. Raises OSError if it cannot be started.
    """

    def __init__(self, command: list[str], rows: int, columns: int, children: Children) -> None:
        self._children = children
        self._lock = threading.Lock()
        self._closed = False
        self._hung_up, self._hang_up = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._master, slave = os.openpty()
        try:
            os.set_blocking(self._master, False)
            shell_terminal.set_size(self._master, rows, columns)
            actions = [(os.POSIX_SPAWN_DUP2, slave, target) for target in range(3)]
            self._pid = children.begin(
                lambda: os.posix_spawn(command[0], command, {}, file_actions=actions, setsid=True)
            )
        except OSError:
            self._close()
            raise
        finally:
            os.close(slave)

    def read(self) -> bytes:
        """Wait for output and return it; return nothing after the shell ended or was hung up."""
        while True:
            ready, _, _ = select.select([self._master, self._hung_up], [], [])
            if self._hung_up in ready:
                return b""
            try:
                return self._read_all()
            except BlockingIOError:
                continue
            except OSError:  # no process has the terminal open any more
                return b""

    def write(self, data: bytes) -> bytes:
        """Write input to the shell; return the part that the terminal does not accept now.

        Returns nothing after the shell has ended.
        """
        with self._lock:
            while data and not self._closed:
                try:
                    data = data[os.write(self._master, data) :]
                except BlockingIOError:
                    return data
                except OSError:
                    break
        return b""

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the terminal; no effect after the shell has ended."""
        with self._lock:
            if not self._closed:
                with contextlib.suppress(OSError):
                    shell_terminal.set_size(self._master, rows, columns)

    def hang_up(self) -> None:
        """Let ``read`` return the end, so that the reading thread closes the shell."""
        with self._lock:
            if not self._closed:
                os.write(self._hang_up, b"h")

    def close(self) -> int | None:
        """Hang up the terminal, and kill the shell if it ignores that.

        Returns its exit code, or None if a signal ended it.
        """
        self._close()
        deadline = time.monotonic() + shell_terminal.LEAVES_S
        while (code := self._children.code(self._pid)) is None:
            if time.monotonic() > deadline:
                self._children.kill_group(self._pid)
            time.sleep(LOOK_S)
        return code if code >= 0 else None

    def _read_all(self) -> bytes:
        """Return the available output: a read returns at most 4 KiB, a request carries more."""
        data = os.read(self._master, shell_terminal.CHUNK)
        with contextlib.suppress(OSError):
            while data and len(data) < shell_terminal.CHUNK:
                piece = os.read(self._master, shell_terminal.CHUNK - len(data))
                if not piece:
                    break
                data += piece
        return data

    def _close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                for one in (self._master, self._hung_up, self._hang_up):
                    os.close(one)
