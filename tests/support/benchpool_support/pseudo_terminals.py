"""A terminal with a program in it, like a user's terminal."""

from __future__ import annotations

import os
import select
import subprocess
import termios
from collections.abc import Mapping, Sequence
from types import TracebackType

from benchpool_scheduler.worker.shell_terminal import CHUNK, set_size
from benchpool_support.waiting import PATIENCE_S


class PseudoTerminal:
    """Program in a terminal of its own, as its foreground process."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._master, slave = os.openpty()
        self.resize(30, 100)
        try:
            self._process = subprocess.Popen(
                ["setsid", "--ctty", *command],
                env=dict(environ),
                stdin=slave,
                stdout=slave,
                stderr=slave,
            )
        finally:
            os.close(slave)
        self.printed = b""

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def type(self, data: bytes) -> None:
        """Write data to the terminal's input."""
        os.write(self._master, data)

    def resize(self, rows: int, columns: int) -> None:
        """Resize the terminal."""
        set_size(self._master, rows, columns)

    def until(self, text: bytes) -> None:
        """Read until a text is printed."""
        while text not in self.printed:
            assert self._read(), self.printed

    def until_one_ends(self, *texts: bytes) -> None:
        """Read until the output ends with one of these texts."""
        while not self.printed.endswith(texts):
            assert self._read(), self.printed

    def shows_what_is_typed(self) -> bool:
        """Return whether the terminal echoes its input, as it does outside raw mode."""
        flags: int = termios.tcgetattr(self._master)[3]
        return bool(flags & termios.ECHO)

    def end(self) -> int:
        """Read to the end of the program and return its exit status."""
        while self._read():
            pass
        return self._process.wait(PATIENCE_S)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        assert ready, f"nothing was printed for {PATIENCE_S:g} s after {self.printed!r}"
        try:
            piece = os.read(self._master, CHUNK)
        except OSError:  # no process has it open any more
            return False
        self.printed += piece
        return bool(piece)
