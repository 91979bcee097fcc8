"""Where a ``benchpool up`` of this account runs whose state folder is not the usual one.

Each such start leaves a note beside the usual state folder, a file with the path of its own, so
that the verbs find it without being told. A note whose start no longer runs says nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import msgspec
import platformdirs

from benchpool_scheduler.worker.process_identity import identity


class _Start(msgspec.Struct, frozen=True):
    """What is read of ``up.json``: which process runs, beyond its pid."""

    pid: int
    process: str = ""


def notes() -> Path:
    """Return the folder of the notes."""
    return platformdirs.user_state_path("benchpool-elsewhere")


def remember(state: Path) -> None:
    """Leave a note of a start; where none can be left, the verbs must be told."""
    with contextlib.suppress(OSError):
        notes().mkdir(mode=0o700, parents=True, exist_ok=True)
        _note(state).write_bytes(_spelled(state))


def forget(state: Path) -> None:
    """Take the note back."""
    with contextlib.suppress(OSError):
        _note(state).unlink(missing_ok=True)


def running() -> list[Path]:
    """Return the state folders of the starts that run now."""
    try:
        found = sorted(notes().iterdir())
    except OSError:
        return []
    return [state for each in found if (state := _state(each)) is not None]


def _note(state: Path) -> Path:
    return notes() / hashlib.sha256(_spelled(state)).hexdigest()[:16]


def _spelled(state: Path) -> bytes:
    """Return the path in UTF-8, whatever the locale is; bytes that are no text stay."""
    return str(state.absolute()).encode(errors="surrogateescape")


def _state(note: Path) -> Path | None:
    try:
        state = Path(note.read_bytes().decode(errors="surrogateescape"))
        start = msgspec.json.decode((state / "up.json").read_bytes(), type=_Start)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return state if start.process and identity(start.pid) == start.process else None
