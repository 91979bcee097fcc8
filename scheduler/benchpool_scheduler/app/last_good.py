"""Last valid configuration, stored beside the database for starts with an invalid file.

An invalid file must not keep a scheduler from starting, because running jobs would be unsupervised.
Each configuration text that comes into force is stored, and used while ``benchpool.yaml`` is
invalid.
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
    """Configuration to start with.

    Attributes:
        text: Text as written. ``problem``: why it is not that of the file, as a sentence.
    """

    configuration: Configuration
    text: str
    problem: str | None = None


class _Kept(msgspec.Struct, frozen=True):
    file: str
    text: str


def path_of(state: Path) -> Path:
    """Return the path of the last valid configuration."""
    return state / "scheduler" / "in-force.json"


def begin(state: Path, file: Path) -> Begin:
    """Return the configuration of the file. If that is invalid, return the last valid one.

    Errors: InvalidInput, with file, line and key, if there is no earlier configuration.
    """
    try:
        text = _read(file)
        return Begin(configuration.load(text, str(file)), text)
    except InvalidInput as wrong:
        return instead(state, file, wrong)


def instead(state: Path, file: Path, wrong: InvalidInput) -> Begin:
    """Return the last valid configuration. Raise ``wrong`` if there is none."""
    kept = _kept(state, file)
    if kept is None:
        raise wrong
    try:
        before = configuration.load(kept, str(path_of(state)))
    except InvalidInput:
        raise wrong from None
    return Begin(before, kept, problem(wrong, file))


def problem(wrong: InvalidInput, file: Path) -> str:
    """Return a message: what is wrong, what is used meanwhile, and how to repair it."""
    return (
        f"{wrong.message} The previous configuration stays in force. Correct {file} and run "
        f"`benchpool config apply {file}`."
    )


def keep(state: Path, file: Path, text: str) -> None:
    """Store the text in force. If the disk fails, the previous text stays."""
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
    """Return the stored text, if it came from this file."""
    try:
        found = msgspec.json.decode(path_of(state).read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return None
    return found.text if found.file == str(file.absolute()) else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is not UTF-8 text"
        raise InvalidInput(
            f"{file} cannot be read ({why}). Give a readable file with --config.", field="config"
        ) from failed
