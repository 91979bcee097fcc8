"""The small files of a worker's folder, and the identity of a process.

A process is (boot id, pid, start time in ticks): a pid alone is soon used again. A zombie still
has both numbers, so it counts as gone; but not while other threads of it live, which hold its
files and its memory, that of GPUs included.
"""

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


def boot_id() -> str:
    """Return the kernel's id of this start of the machine."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def stat_fields(pid: int) -> list[bytes] | None:
    """Return ``/proc/PID/stat`` from the state on, or None when there is no such process.

    The name in parentheses may hold anything, so what follows its last ``)`` is taken.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; None when it is gone."""
    fields = stat_fields(pid)
    if fields is None or (fields[0] in (b"Z", b"X") and int(fields[17]) <= 1):
        return None
    return int(fields[19])


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
