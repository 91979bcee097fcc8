"""The configuration that was last in force: kept beside the database, for a start with a wrong one.

A file that was edited badly must not keep a scheduler from starting: running jobs would be watched
over by nobody. So the text of each configuration that came into force is kept, and used instead,
for as long as ``benchpool.yaml`` is wrong.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchpool_scheduler import configuration
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Begin:
    """A configuration to begin with.

    Attributes:
        text: As it was written. ``problem``: why it is not that of the file, as a sentence.
    """

    configuration: Configuration
    text: str
    problem: str | None = None


class _Kept(msgspec.Struct, frozen=True):
    file: str
    text: str


def path_of(state: Path) -> Path:
    """Return where the last good configuration is kept."""
    return state / "scheduler" / "in-force.json"


def begin(state: Path, file: Path) -> Begin:
    """Return what the file says; where that is wrong, what was last in force.

    Errors: InvalidInput, with file, line and key, where nothing was in force before.
    """
    try:
        text = _read(file)
        return Begin(configuration.load(text, str(file)), text)
    except InvalidInput as wrong:
        return instead(state, file, wrong)


def instead(state: Path, file: Path, wrong: InvalidInput) -> Begin:
    """Return what was in force before the file became wrong. Errors: the one that is given."""
    kept = _kept(state, file)
    if kept is None:
        raise wrong
    try:
        before = configuration.load(kept, str(path_of(state)))
    except InvalidInput:
        raise wrong from None
    return Begin(before, kept, problem(wrong, file))


def problem(wrong: InvalidInput, file: Path) -> str:
    """Return what is wrong, what is used meanwhile, and how to mend it."""
    return (
        f"{wrong.message} The configuration that was in force before is used until then: correct "
        f"{file} and run `benchpool config apply {file}`."
    )


def keep(state: Path, file: Path, text: str) -> None:
    """Keep the text that is in force; a disk that takes nothing keeps the one before."""
    path = path_of(state)
    temporary = path.with_name(f".{path.name}.new")
    with contextlib.suppress(OSError):
        if _kept(state, file) == text:
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(_Kept(str(file.absolute()), text)))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)


def _kept(state: Path, file: Path) -> str | None:
    """Return the text that was in force from this very file."""
    try:
        found = msgspec.json.decode(path_of(state).read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return None
    return found.text if found.file == str(file.absolute()) else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is no UTF-8 text"
        raise InvalidInput(
            f"{file} cannot be read ({why}): give a readable file with --config.", field="config"
        ) from failed
