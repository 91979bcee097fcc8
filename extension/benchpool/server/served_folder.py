"""Conversion between paths of the page and files inside the folder that the server serves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from benchpool.values.keeping import FOLDER as VALUES
from benchpool_scheduler.errors import InvalidInput, NotFound

MAX_FILES = 1000


class ServedFolder:
    """Converter between paths of the page and files below ``root``.

    Links that lead out of the root are followed, as in JupyterLab: many homes have a link to a
    larger disk. A user of this server may read everything that its account may read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._linked: dict[Path, PurePosixPath] = {}

    def file(self, path: str) -> Path:
        """Return the file for a path of the page.

        Raises:
            InvalidInput: The path is not valid.
            NotFound: There is no such file here.
        """
        parts = self._parts(path)
        found = self.root.joinpath(*parts)
        if not found.is_file():
            raise NotFound(
                f"The file {'/'.join(parts)[:200]} does not exist on this server. Save it if it "
                "is open, or look for it in the file browser.",
                field="path",
            )
        self._remember(parts)
        return found

    def folder_of(self, path: str) -> Path:
        """Return the folder of a notebook that may not be saved yet. Raises as ``file`` does."""
        try:
            return self.file(path).parent
        except NotFound:
            parts = self._parts(path)[:-1]
            folder = self.root.joinpath(*parts)
            if not folder.is_dir():
                raise
            self._remember(parts)
            return folder

    @staticmethod
    def _parts(path: str) -> list[str]:
        inner = path.split(":", 1)[1] if path.startswith("RTC:") else path
        parts = inner.strip("/").split("/")
        strange = "\0" in path or "\\" in path or any(len(part) > 200 for part in parts)
        if strange or any(part in {"", ".", ".."} for part in parts):
            raise InvalidInput(f"{path[:200]!r} is not a path of this server.", field="path")
        return parts

    def _remember(self, parts: Sequence[str]) -> None:
        """Record links on a path that lead out of the root, for the conversion back."""
        for count in range(1, len(parts) + 1):
            at = self.root.joinpath(*parts[:count])
            if at.is_symlink() and not at.resolve().is_relative_to(self.root):
                self._linked[at.resolve()] = PurePosixPath(*parts[:count])

    def relative(self, path: Path) -> str | None:
        """Return the page's path for a file; None if the page cannot show the file."""
        real = path.resolve()
        if real.is_relative_to(self.root):
            return real.relative_to(self.root).as_posix()
        if not any(real.is_relative_to(place) for place in self._linked):
            # A job submitted before this server started: most such links are in the root itself.
            for one in os.scandir(self.root):
                if one.is_symlink():
                    self._remember([one.name])
        places = [place for place in self._linked if real.is_relative_to(place)]
        if not places:
            return None
        nearest = max(places, key=lambda place: len(place.parts))
        return (self._linked[nearest] / real.relative_to(nearest)).as_posix()

    def files_below(self, folder: Path) -> list[str]:
        """Return the page's paths of the regular files below a folder; at most 1000."""
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
