"""Results that cannot be delivered, packed into one file that the scheduler keeps."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile

SKIPPED_FOLDERS = frozenset({"__pycache__", ".ipynb_checkpoints", ".git"})
"""Folders that are not results."""


class Archive:
    """A file for packed results, visible only when it is complete.

    Args:
        path: Final path of the file; None for no file.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._new = f"{path}.new"
        self.file: int | None = None
        if path is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        # Without the file, the results are still in the folder of the job.
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            self.file = os.open(self._new, flags, 0o600)

    def close(self, *, keep: bool) -> None:
        """Move the file into place, or remove it."""
        if self.file is None or self._path is None:
            return
        os.close(self.file)
        self.file = None
        with contextlib.suppress(OSError):
            os.rename(self._new, self._path) if keep else os.unlink(self._new)


def pack(archive: int, trees: list[tuple[str, int | None]]) -> bool:
    """Pack the regular files of trees into an open file; return whether all could be read.

    Links are never followed. Of two files with the same path, the later one takes precedence.

    Args:
        trees: Folders, each with None for all files or an instant (ns) after which files changed.
    """
    import tarfile  # imported on demand, to keep the supervisor's memory small

    try:
        with os.fdopen(os.dup(archive), "wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
            for tree, after_ns in trees:
                for path, where, name in _files(tree, after_ns):
                    _add(tar, path, where, name)
    except OSError:
        return False
    return True


def _files(tree: str, after_ns: int | None) -> Iterator[tuple[str, int, str]]:
    """Yield path, open folder and name of the regular files of a tree."""
    if not os.path.isdir(tree):
        return
    for here, folders, names, where in os.fwalk(tree, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            facts = os.lstat(name, dir_fd=where)
            changed = after_ns is None or facts.st_ctime_ns > after_ns
            if stat.S_ISREG(facts.st_mode) and changed:
                yield os.path.normpath(os.path.join(os.path.relpath(here, tree), name)), where, name


def _add(tar: tarfile.TarFile, path: str, where: int, name: str) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=where), "rb") as file:
        tar.addfile(tar.gettarinfo(arcname=path, fileobj=file), file)
