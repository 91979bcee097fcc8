"""The small files of a worker's folder, through which the scheduler finds a worker again."""

from __future__ import annotations

import json
import os
import stat

LIMIT = 64 * 1024
"""Largest record that is read, bytes."""

PROCESS = "process.json"
EXIT = "exit.json"
STOP = "stop.json"
NOTICE = "notice.json"
PROGRESS = "progress.json"
LOCK = "lock"
EXCHANGE = "exchange"
FILES = "files"


def write(
    folder: str, name: str, value: dict[str, object], *, durable: bool, uid: int | None = None
) -> None:
    """Write a record whole: readers see the old one, the new one, or none.

    Links in place of the file are replaced, never followed. ``durable`` waits for the disk;
    ``uid`` is the owner when it is not us.
    """
    where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        temporary = f".{name}.{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(temporary, flags, 0o600, dir_fd=where)
        try:
            os.write(file, json.dumps(value).encode())
            if uid is not None:
                os.fchown(file, uid, -1)
            if durable:
                os.fsync(file)
            os.rename(temporary, name, src_dir_fd=where, dst_dir_fd=where)
        except OSError:
            os.unlink(temporary, dir_fd=where)
            raise
        finally:
            os.close(file)
        if durable:
            os.fsync(where)
    finally:
        os.close(where)


def open_regular(path: str) -> int:
    """Open a file for reading; a link, pipe or device in its place is an OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} is not a regular file")
    return file


def read(folder: str, name: str) -> dict[str, object] | None:
    """Return a record; None when it is missing, damaged, too large or not a plain file."""
    try:
        file = open_regular(os.path.join(folder, name))
    except OSError:
        return None
    try:
        value = json.loads(os.read(file, LIMIT))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(file)
    return value if isinstance(value, dict) else None
