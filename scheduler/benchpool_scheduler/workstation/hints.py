"""Commands for messages, which work as printed for any state folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from benchpool_scheduler.client.credentials import state_folder


def command(words: str, state: Path, environ: Mapping[str, str]) -> str:
    """Return a command for a state folder, in backticks.

    >>> command("down", Path("/data/my pool"), {})
    "`benchpool down --state '/data/my pool'`"
    >>> command("down", Path("/data/pool"), {"BENCHPOOL_STATE": "/data/pool"})
    '`benchpool down`'
    >>> command("down --jobs cancel", Path("/data/pool"), {})
    '`benchpool down --state /data/pool --jobs cancel`'
    """
    verb, dash, rest = words.partition(" -")
    named = "" if is_usual(state, environ) else f" --state {shlex.quote(str(state))}"
    return f"`benchpool {verb}{named}{dash}{rest}`"


def is_usual(state: Path, environ: Mapping[str, str]) -> bool:
    """Return whether commands find this state folder without an option."""
    return state_folder(environ).expanduser().absolute() == state.expanduser().absolute()


def export(state: Path) -> str:
    """Return the shell command after which all commands find this state folder.

    >>> export(Path("/data/pool"))
    '`export BENCHPOOL_STATE=/data/pool`'
    """
    return f"`export BENCHPOOL_STATE={shlex.quote(str(state))}`"
