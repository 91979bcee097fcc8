"""``benchpool shell``: connects this terminal to a shell in a running worker."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from typing import Any

import click

from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument, option
from benchpool_scheduler.client import Client
from benchpool_scheduler.contract.shells import TYPED_BYTES, Shell, ShellInput, ShellOpening
from benchpool_scheduler.errors import BenchpoolError

END_OF_FILE = b"\x04"


class Typist(threading.Thread):
    """Thread that sends typed input and new terminal sizes until it is stopped."""

    def __init__(self, client: Client, opened: Shell) -> None:
        super().__init__(daemon=True)
        self._client, self._opened = client, opened
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._number = 0
        self._over = False
        self.failed: BenchpoolError | None = None

    def resized(self, *_: object) -> None:
        """Handle a change of the terminal's size."""
        os.write(self._waker, b"r")

    def stop(self) -> None:
        """Stop sending and wait for the thread to end."""
        self._over = True
        os.write(self._waker, b"s")
        self.join()

    def run(self) -> None:
        """Send input until stopped."""
        try:
            self._send_all()
        except BenchpoolError as failed:
            self.failed = failed

    def _send_all(self) -> None:
        sources = [sys.stdin.fileno(), self._wake]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if self._wake in ready:
                os.read(self._wake, 4096)
                if self._over:
                    return
                self._send(**size_of(sys.stdin.fileno()))
            if sources[0] in ready and sources[0] != self._wake:
                data = os.read(sources[0], TYPED_BYTES)
                self._send(data=data or END_OF_FILE)
                if not data:
                    del sources[0]

    def _send(self, **what: Any) -> None:
        self._number += 1
        typed = ShellInput(self._opened.shell, self._number, **what)
        self._client.type_into_shell(self._opened.job, typed)


def size_of(terminal: int) -> dict[str, int]:
    """Return rows and columns of a terminal. Empty if it is not a terminal."""
    with contextlib.suppress(OSError):
        columns, rows = os.get_terminal_size(terminal)
        if rows and columns:
            return {"rows": min(rows, 1000), "columns": min(columns, 1000)}
    return {}


@contextlib.contextmanager
def raw(terminal: int) -> Iterator[None]:
    """Set the terminal to raw mode, which passes on each key, even Ctrl-C, and restore it."""
    if not os.isatty(terminal):
        yield
        return
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def shell(session: Session, options: Options) -> int:
    """Open a shell and connect this terminal to it until one of them ends."""
    terminal = sys.stdin.fileno()
    opening = ShellOpening(
        worker=options["worker"],
        term=session.environ.get("TERM") or "dumb",
        **size_of(terminal),
    )
    opened = session.client.open_shell(options["id"], opening)
    typist = Typist(session.client, opened)
    before = signal.signal(signal.SIGWINCH, typist.resized)
    try:
        with raw(terminal):
            typist.start()
            try:
                text, code = _show(session.client, opened, typist)
            finally:
                typist.stop()
    finally:
        signal.signal(signal.SIGWINCH, before)
    session.screen.aside(f"benchpool: {text}")
    return code


def _show(client: Client, opened: Shell, typist: Typist) -> tuple[str, int]:
    offset = 0
    while True:
        output = client.shell_output(opened.job, shell=opened.shell, offset=offset)
        sys.stdout.buffer.write(output.data)
        sys.stdout.buffer.flush()
        offset = output.next
        if typist.failed is not None:
            raise typist.failed
        if output.ended:
            return output.text, 1 if output.exit_code is None else output.exit_code


SHELL = Verb(
    ("shell",),
    "Open a shell inside a running worker of your own job.",
    shell,
    (
        argument("id", metavar="ID"),
        option("--worker", type=click.IntRange(min=0), default=0, help="Number of the worker."),
    ),
    "The shell runs as the worker's account, with its variables, folders and GPUs, and ends with "
    "it. `exit` or Ctrl-D leaves it. Only the owner of the job may open one.",
)
