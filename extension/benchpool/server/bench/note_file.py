"""Writes a note into the folder that the server serves, without overwriting a file."""

from __future__ import annotations

from pathlib import Path

MOST = 100
"""Maximum number of notes of one name in a folder."""


def leave(folder: Path, name: str, text: str) -> str:
    """Write a note under the first free name and return that name.

    Raises:
        OSError: The folder cannot be written to, or all names are taken.
    """
    stem, dot, ending = name.partition(".")
    for number in range(1, MOST + 1):
        called = name if number == 1 else f"{stem}-{number}{dot}{ending}"
        try:
            with (folder / called).open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        return called
    raise FileExistsError(f"{folder} has {MOST} notes already. Remove some.")
