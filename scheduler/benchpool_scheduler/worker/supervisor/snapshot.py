"""Writing of the submitted files into a fresh folder.

The folder is closed to the worker until it is complete. Only regular files and folders are created,
so no link can lead a write outside.
"""

from __future__ import annotations

import os
import re
import time

from .. import machine_faults, records
from .config import SupervisorConfig

COMPONENT_LIMIT = 255
PATH_LIMIT = 4096
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BadSnapshot(Exception):
    """A path, hash or object is invalid or missing; the text is for the user."""


def checked_parts(path: str) -> list[str]:
    """Return the components of a snapshot path. Raises BadSnapshot.

    >>> checked_parts("src/train.py")
    ['src', 'train.py']
    >>> checked_parts("../train.py")
    Traceback (most recent call last):
        ...
    benchpool_scheduler.worker.supervisor.snapshot.BadSnapshot: ...
    """
    parts = path.split("/")
    bad = (
        not path
        or len(os.fsencode(path)) > PATH_LIMIT
        or "\0" in path
        or any(part in ("", ".", "..") for part in parts)
        or any(len(os.fsencode(part)) > COMPONENT_LIMIT for part in parts)
    )
    if bad:
        raise BadSnapshot(
            f"the snapshot path {path[:200]!r} is not allowed; paths are relative, without "
            f"'.' or '..', at most {PATH_LIMIT} bytes"
        )
    return parts


def lay_out_for(folder: str, config: SupervisorConfig, owner: tuple[int, int] | None) -> None:
    """Write the files of a worker into its folder.

    A worker that runs in another folder gets only the files from a notebook (``records.BROUGHT``).
    Raises the errors of ``lay_out``.
    """
    brought = [file for file in config.files if file[0].partition("/")[0] in records.BROUGHT]
    files = brought if config.cwd is not None else config.files
    if files or config.cwd is None:
        os.mkdir(folder, 0o700)
        lay_out(folder, config.objects, files, owner)
    for name in {file[0].partition("/")[0] for file in brought}:
        config.env[records.BROUGHT[name]] = os.path.join(folder, name)
    config.files.clear()


def lay_out(
    folder: str, objects: str, files: list[tuple[str, str, bool]], owner: tuple[int, int] | None
) -> None:
    """Copy every (path, sha256, executable) of ``files`` from ``objects`` into ``folder``.

    ``owner`` is the (uid, gid) of the new files, if it differs from this process.

    Raises:
        BadSnapshot: A path is not allowed or named twice, or an object is missing.
    """
    made: set[str] = set()
    for path, sha256, executable in files:
        parts = checked_parts(path)
        here = folder
        for part in parts[:-1]:
            here = os.path.join(here, part)
            if here not in made:
                _make_folder(here, path, owner)
                made.add(here)
        if not _SHA256.fullmatch(sha256):
            raise BadSnapshot(f"the file {path!r} of the snapshot has no valid content hash")
        source = os.path.join(objects, sha256[:2], sha256)
        try:
            _copy(source, os.path.join(here, parts[-1]), executable, owner)
        except FileNotFoundError as error:
            raise BadSnapshot(
                f"the content of {path!r} is missing on the server; submit the job again"
            ) from error
        except FileExistsError as error:
            raise BadSnapshot(f"the snapshot names {path!r} twice") from error
    if owner is not None:
        os.chown(folder, *owner)


def _make_folder(folder: str, path: str, owner: tuple[int, int] | None) -> None:
    try:
        os.mkdir(folder, 0o700)
    except OSError as error:
        if machine_faults.number_of(error) is not None:
            raise
        raise BadSnapshot(f"the snapshot has a file where {path!r} needs a folder") from error
    if owner is not None:
        os.chown(folder, *owner)


def _copy(source: str, target: str, executable: bool, owner: tuple[int, int] | None) -> None:
    reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        writer = os.open(target, flags, 0o700 if executable else 0o600)
        try:
            copy_bytes(reader, writer)
            if owner is not None:
                os.fchown(writer, *owner)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def copy_bytes(reader: int, writer: int) -> int:
    """Copy from one open file to another inside the kernel; return the number of bytes."""
    total = 0
    while done := os.sendfile(writer, reader, None, 16 * 1024 * 1024):
        total += done
    return total


def instant(folder: str) -> int:
    """Return a ctime that is not before any written file, and before every later change."""
    marker = os.path.join(folder, ".laid-out")
    os.close(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    first = os.stat(marker).st_ctime_ns
    while True:
        time.sleep(0.001)
        os.utime(marker)
        if os.stat(marker).st_ctime_ns > first:
            os.unlink(marker)
            return first
