"""Paths of the page and files of the machine, kept inside the folder that the server serves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from benchpool.values.keeping import FOLDER as VALUES
from benchpool_scheduler.errors import InvalidInput, NotFound

MAX_FILES = 1000


class ServedFolder:
    """Turns paths of the page into files below ``root`` and back."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def file(self, path: str) -> Path:
        """Return the file that the page names; links may not lead out of the root.

        Raises:
            InvalidInput: The path is not one of the page.
            NotFound: There is no such file here.
        """
        inner = path.split(":", 1)[1] if path.startswith("RTC:") else path
        parts = inner.strip("/").split("/")
        strange = "\0" in path or "\\" in path or any(len(part) > 200 for part in parts)
        if strange or any(part in {"", ".", ".."} for part in parts):
            raise InvalidInput(f"{path[:200]!r} is no path of this server.", field="path")
        found = self.root.joinpath(*parts)
        if not found.is_file() or not found.resolve().is_relative_to(self.root):
            raise NotFound(
                f"There is no file {inner[:200]} on this server: save it first.", field="path"
            )
        return found

    def folder_of(self, path: str) -> Path:
        """Return the folder of a notebook that may not have been saved yet. Errors: as ``file``."""
        inner = path.split(":", 1)[1] if path.startswith("RTC:") else path
        try:
            return self.file(path).parent
        except NotFound:
            parent = inner.strip("/").rpartition("/")[0]
            folder = self.root.joinpath(*parent.split("/")) if parent else self.root
            if not folder.is_dir() or not folder.resolve().is_relative_to(self.root):
                raise
            return folder

    def relative(self, path: Path) -> str | None:
        """Return a file of the machine as the page names it; None outside the root."""
        real = path.resolve()
        if not real.is_relative_to(self.root):
            return None
        return real.relative_to(self.root).as_posix()

    def files_below(self, folder: Path) -> list[str]:
        """Return the plain files below a folder, as the page names them; at most 1000."""
        found: list[str] = []
        for path in _plain_files(folder):
            name = self.relative(path)
            if name is not None:
                found.append(name)
            if len(found) >= MAX_FILES:
                break
        return sorted(found)


def _plain_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != VALUES and not each.startswith("."))
        for name in files:
            path = Path(place, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path
