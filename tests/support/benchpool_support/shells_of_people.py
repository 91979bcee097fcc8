"""``benchpool shell`` as a person has it: in a terminal of their own."""

from __future__ import annotations

import os
import sys

from benchpool_support.pseudo_terminals import PseudoTerminal
from benchpool_support.typed_shells import CATCHES, CATCHING, CAUGHT

COMMAND = (sys.executable, "-m", "benchpool_scheduler.cli", "shell")


def environ(url: str, token: str) -> dict[str, str]:
    """Return the variables of a person who uses a pool."""
    return {
        "PATH": os.environ["PATH"],
        "BENCHPOOL_URL": url,
        "BENCHPOOL_TOKEN": token,
        "NO_PROXY": "*",
        "TERM": "xterm",
    }


def begun(variables: dict[str, str], job: str) -> PseudoTerminal:
    """Type ``benchpool shell JOB``, and wait for the prompt of its shell."""
    terminal = PseudoTerminal([*COMMAND, job], variables)
    terminal.until_one_ends(b"$ ", b"# ")
    return terminal


def refused(variables: dict[str, str], job: str) -> str:
    """Type ``benchpool shell JOB`` in vain; return what is said."""
    with PseudoTerminal([*COMMAND, job], variables) as terminal:
        assert terminal.end() != 0
        return terminal.printed.decode()


def obeys(terminal: PseudoTerminal) -> None:
    """Hold that size, changes of it and Ctrl-C reach what runs in the shell."""
    terminal.type(b'echo "<$(stty size) $TERM>"\n')
    terminal.until(b"<30 100 xterm>")
    terminal.resize(10, 50)
    terminal.type(b'until test "$(stty size)" = "10 50"; do :; done; echo smal\'\'ler\n')
    terminal.until(b"smaller")
    terminal.type(CATCHES)
    terminal.until(CATCHING)
    terminal.type(b"\x03")
    terminal.until(CAUGHT)
