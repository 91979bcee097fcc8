"""Paths of the page and files of the machine, kept inside the folder that the server serves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from benchpool.values.keeping import FOLDER as VALUES
from benchpool_scheduler.errors import InvalidInput, NotFound

MAX_FILES = 1000


class ServedFolder:
    """Turns paths of the page into files below ``root`` and back.

    A link that leads out of the root is followed, as JupyterLab follows it: many homes have one to
    a larger disk, and whoever may use this server may read all that its account may read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._linked: dict[Path, PurePosixPath] = {}

    def file(self, path: str) -> Path:
        """Return the file that the page names.

        Raises:
            InvalidInput: The path is not one of the page.
            NotFound: There is no such file here.
        """
        parts = self._parts(path)
        found = self.root.joinpath(*parts)
        if not found.is_file():
            raise NotFound(
                f"There is no file {'/'.join(parts)[:200]} on this server any more, or not yet: "
                "save it if it is open, else look for it in the file browser.",
                field="path",
            )
        self._remember(parts)
        return found

    def folder_of(self, path: str) -> Path:
        """Return the folder of a notebook that may not have been saved yet. Errors: as ``file``."""
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
            raise InvalidInput(f"{path[:200]!r} is no path of this server.", field="path")
        return parts

    def _remember(self, parts: Sequence[str]) -> None:
        """Note which links on a way lead out of the root, so that the way back is known."""
        for count in range(1, len(parts) + 1):
            at = self.root.joinpath(*parts[:count])
            if at.is_symlink() and not at.resolve().is_relative_to(self.root):
                self._linked[at.resolve()] = PurePosixPath(*parts[:count])

    def relative(self, path: Path) -> str | None:
        """Return a file of the machine as the page names it; None where the page cannot show it."""
        real = path.resolve()
        if real.is_relative_to(self.root):
            return real.relative_to(self.root).as_posix()
        if not any(real.is_relative_to(place) for place in self._linked):
            # A job that was sent before this server began: most such links lie in the root itself.
            for one in os.scandir(self.root):
                if one.is_symlink():
                    self._remember([one.name])
        places = [place for place in self._linked if real.is_relative_to(place)]
        if not places:
            return None
        nearest = max(places, key=lambda place: len(place.parts))
        return (self._linked[nearest] / real.relative_to(nearest)).as_posix()

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
