"""Terminals of JupyterLab: they find benchpool, and ``python3`` is the notebook's.

A server that was not started from a terminal opens login shells, so that ``/etc/profile`` and the
like are read. These reset the search path. The shells set here read them too, then put the server's
own programs first.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Any

_POSIX = ("sh", "bash", "dash", "ksh", "mksh", "zsh")


def set_shell(server_app: Any, environ: Mapping[str, str]) -> None:
    """Set the shell of this server's terminals, unless a shell is configured.

    Args:
        server_app: The server, whose terminals are not set up yet: extensions load in name order.
        environ: The server's environment.
    """
    settings = dict(server_app.terminado_settings)
    command = shell_command(
        environ.get("SHELL") or which("bash") or "/bin/sh", Path(sys.executable).parent
    )
    if command is None or "shell_command" in settings or sys.stdout.isatty():
        return
    server_app.terminado_settings = {**settings, "shell_command": command}


def shell_command(shell: str, programs: Path) -> list[str] | None:
    """Return the command of a shell with these programs first; None for an unknown shell.

    >>> shell_command("/bin/tcsh", Path("/opt/lab/bin")) is None
    True
    >>> shell_command("/usr/bin/fish", Path("/opt/lab/bin"))
    ['/usr/bin/fish', '-l', '-C', 'set -gx PATH /opt/lab/bin $PATH']
    """
    name = Path(shell).name
    if name == "fish":
        return [shell, "-l", "-C", f"set -gx PATH {shlex.quote(str(programs))} $PATH"]
    if name not in _POSIX:
        return None
    return [shell, "-l", "-c", 'export PATH="$1:$PATH"; exec "$0" -i', shell, str(programs)]
