"""``benchpool shell`` as a user runs it, in a terminal of its own."""

from __future__ import annotations

import os
import sys

from benchpool_support.pseudo_terminals import PseudoTerminal
from benchpool_support.typed_shells import CATCHES, CATCHING, CAUGHT

COMMAND = (sys.executable, "-m", "benchpool_scheduler.cli", "shell")


def environ(url: str, token: str) -> dict[str, str]:
    """Return the environment variables of a user of a pool."""
    return {
        "PATH": os.environ["PATH"],
        "BENCHPOOL_URL": url,
        "BENCHPOOL_TOKEN": token,
        "NO_PROXY": "*",
        "TERM": "xterm",
    }


def begun(variables: dict[str, str], job: str) -> PseudoTerminal:
    """Type ``benchpool shell JOB`` and wait for the prompt of its shell."""
    terminal = PseudoTerminal([*COMMAND, job], variables)
    terminal.until_one_ends(b"$ ", b"# ")
    return terminal


def refused(variables: dict[str, str], job: str) -> str:
    """Type ``benchpool shell JOB``, which must be refused, and return the message."""
    with PseudoTerminal([*COMMAND, job], variables) as terminal:
        assert terminal.end() != 0
        return terminal.printed.decode()


def obeys(terminal: PseudoTerminal) -> None:
    """Check that the size, a resize and Ctrl-C reach the program in the shell."""
    terminal.type(b'echo "<$(stty size) $TERM>"\n')
    terminal.until(b"<30 100 xterm>")
    terminal.resize(10, 50)
    terminal.type(b'until test "$(stty size)" = "10 50"; do :; done; echo smal\'\'ler\n')
    terminal.until(b"smaller")
    terminal.type(CATCHES)
    terminal.until(CATCHING)
    terminal.type(b"\x03")
    terminal.until(CAUGHT)
