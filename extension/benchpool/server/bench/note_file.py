"""Writes a note into the folder that the server serves, and removes it while it is unchanged."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST = 100
"""Maximum number of notes of one name in a folder."""


@dataclass(frozen=True, slots=True)
class LeftNote:
    """Note in a folder."""

    path: Path
    text: str


def leave(folder: Path, name: str, text: str) -> LeftNote:
    """Write a note under the first free name, without overwriting a file.

    Raises:
        OSError: The folder cannot be written to, or all names are taken.
    """
    stem, dot, ending = name.partition(".")
    for number in range(1, MOST + 1):
        path = folder / (name if number == 1 else f"{stem}-{number}{dot}{ending}")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        return LeftNote(path, text)
    raise FileExistsError(f"{folder} has {MOST} notes already. Remove some.")


def withdraw(note: LeftNote) -> None:
    """Remove a note. A note that its owner has changed or removed is left alone.

    Raises:
        OSError: The note cannot be removed.
    """
    with suppress(FileNotFoundError):
        if note.path.read_bytes() == note.text.encode():
            note.path.unlink()
