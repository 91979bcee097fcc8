"""Registry of this account's ``benchpool up`` processes with a non-default state folder.

Each such start writes a file with the path of its state folder beside the default folder, so that
the verbs find it without options. Files of starts that no longer run are ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import msgspec
import platformdirs

from benchpool_scheduler.worker.process_identity import identity


class _Start(msgspec.Struct, frozen=True):
    """Fields of ``up.json`` that identify the process beyond its PID."""

    pid: int
    process: str = ""


def notes() -> Path:
    """Return the folder of the registry."""
    return platformdirs.user_state_path("benchpool-elsewhere")


def remember(state: Path) -> None:
    """Register a start. If the file cannot be written, verbs need the state folder as an option."""
    with contextlib.suppress(OSError):
        notes().mkdir(mode=0o700, parents=True, exist_ok=True)
        _note(state).write_bytes(_spelled(state))


def forget(state: Path) -> None:
    """Remove a start from the registry."""
    with contextlib.suppress(OSError):
        _note(state).unlink(missing_ok=True)


def running() -> list[Path]:
    """Return the state folders of the running starts."""
    try:
        found = sorted(notes().iterdir())
    except OSError:
        return []
    return [state for each in found if (state := _state(each)) is not None]


def _note(state: Path) -> Path:
    return notes() / hashlib.sha256(_spelled(state)).hexdigest()[:16]


def _spelled(state: Path) -> bytes:
    """Return the path in UTF-8, whatever the locale. Undecodable bytes are kept."""
    return str(state.absolute()).encode(errors="surrogateescape")


def _state(note: Path) -> Path | None:
    try:
        state = Path(note.read_bytes().decode(errors="surrogateescape"))
        start = msgspec.json.decode((state / "up.json").read_bytes(), type=_Start)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return state if start.process and identity(start.pid) == start.process else None
