"""Programs in this server's terminals, in the foreground or background, read from ``/proc``.

All processes started from a terminal have two marks in their environment, one for this server and
one for terminals. So programs behind a closed terminal or in tmux are found too. Shells waiting for
input, and programs that hold shells together, do not count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

OF_TERMINALS = b"JUPYTER_SERVER_URL="
"""Start of the variable that Jupyter gives to its terminals, and to no other process it starts.

Its value does not identify the server: all servers with an automatic port share it.
"""

OF_A_SERVER = "BENCHPOOL_NOTEBOOK_SERVER"
"""Variable that all processes started by one notebook server have."""

_SHELLS = ("sh", "bash", "dash", "ksh", "mksh", "zsh", "fish", "tcsh", "csh")
_HOLDERS = (
    "tmux", "screen", "SCREEN", "zellij", "dtach", "abduco",
    "ssh-agent", "gpg-agent", "keyboxd", "dbus-daemon", "dbus-launch", "gitstatusd",
)  # fmt: skip
"""Name prefixes of programs that hold shells together, or that shells start and keep for
themselves.
"""


@dataclass(frozen=True, slots=True)
class TerminalProgram:
    """Process of a terminal, with the name of its program."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class TerminalScan:
    """Result of a scan: programs, and PIDs of shells that wait for input and run no program."""

    programs: tuple[TerminalProgram, ...] = ()
    waiting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stat:
    name: str
    state: str
    session: int


def scan(shells: Sequence[int], server: str, proc: Path = Path("/proc")) -> TerminalScan | None:
    """Return the programs in terminals, or None if the machine does not show them.

    Args:
        shells: The process of each open terminal.
        server: This server's value of ``OF_A_SERVER``.
    """
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return None
    if os.getpid() not in pids:
        return None
    found = {*shells, *(pid for shell in shells for pid in _children(proc, shell))}
    mark = f"{OF_A_SERVER}={server}".encode()
    found |= {pid for pid in pids if _is_marked(proc, pid, mark)}
    stats = {pid: stat for pid in sorted(found) if (stat := _stat(proc, pid)) is not None}
    run = {pid: stat for pid, stat in stats.items() if pid not in shells and _is_program(pid, stat)}
    sessions = {stat.session for stat in run.values()}
    waiting = (pid for pid, stat in stats.items() if pid in shells or _is_shell(pid, stat))
    return TerminalScan(
        tuple(TerminalProgram(pid, stat.name) for pid, stat in run.items()),
        tuple(pid for pid in waiting if pid not in sessions),
    )


def _is_shell(pid: int, stat: _Stat) -> bool:
    """Return whether a process is a shell with its own session, which waits for input."""
    return stat.name in _SHELLS and stat.session == pid


def _is_program(pid: int, stat: _Stat) -> bool:
    ends = stat.state in "ZX"
    return not ends and not _is_shell(pid, stat) and not stat.name.startswith(_HOLDERS)


def _children(proc: Path, pid: int) -> Iterator[int]:
    try:
        pids = (proc / str(pid) / "task" / str(pid) / "children").read_text()
    except OSError:
        return
    yield from map(int, pids.split())


def _is_marked(proc: Path, pid: int, mark: bytes) -> bool:
    try:
        given = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # gone, or owned by another user
    return mark in given and any(one.startswith(OF_TERMINALS) for one in given)


def _stat(proc: Path, pid: int) -> _Stat | None:
    """Return name, state and session of a process. The name may contain any characters."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return _Stat(name, fields[0], int(fields[3]))
