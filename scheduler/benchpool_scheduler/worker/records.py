"""The small files of a worker's folder, by which the scheduler recovers a worker."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat

from . import machine_faults

LIMIT = 64 * 1024
"""Size limit of a record that is read, in bytes."""

PROCESS = "process.json"
EXIT = "exit.json"
STOP = "stop.json"
PROCESSES = "processes.json"
NOTICE = "notice.json"
PROGRESS = "progress.json"
METRICS = "metrics.jsonl"
METRICS_BEFORE = "metrics.jsonl.before"
RUNS = "runs.json"
LOCK = "lock"
EXCHANGE = "exchange"
FILES = "files"
UNDELIVERED = "its results could not be"
"""Beginning of the clause, in the text of an end, that results were not delivered and why."""
KEPT = "the pool keeps them"
"""End of that clause if ``benchpool results`` can fetch them."""
VALUES = ".benchpool-values"
"""Folder, among a job's files, of the values that a notebook sent with it."""

WHEELS = ".benchpool-wheels"
"""Folder of packages that a notebook sent, for the runner to install."""

VALUES_VARIABLE = "BENCHPOOL_VALUES_DIR"
"""Variable with the path of the folder of values."""

WHEELS_VARIABLE = "BENCHPOOL_WHEELS_DIR"
BROUGHT = {VALUES: VALUES_VARIABLE, WHEELS: WHEELS_VARIABLE}
"""Folders that accompany a job in any working folder, and the variables that name them."""


def write(
    folder: str, name: str, value: dict[str, object], *, durable: bool, uid: int | None = None
) -> None:
    """Write a record atomically: readers see the old one, the new one, or none.

    A link in place of the file is replaced, never followed. ``durable`` waits for the disk; ``uid``
    is the owner, if it differs from this process.
    """
    where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        temporary = f".{name}.{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(temporary, flags, 0o600, dir_fd=where)
        try:
            _write_all(file, json.dumps(value).encode())
            if uid is not None:
                os.fchown(file, uid, -1)
            if durable:
                os.fsync(file)
            os.rename(temporary, name, src_dir_fd=where, dst_dir_fd=where)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=where)
            raise
        finally:
            os.close(file)
        if durable:
            os.fsync(where)
    finally:
        os.close(where)


class Reserve:
    """Space for a record that must be written even on a full disk: reserved early, used once.

    The file exists, open and filled, so that neither space nor inode nor descriptor is needed
    later.
    """

    SIZE = 4096

    def __init__(self, folder: str, name: str) -> None:
        """Reserve the space. Raises OSError."""
        self._name = name
        self._where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._kept = f".{name}.{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(self._kept, flags, 0o600, dir_fd=self._where)
        _write_all(self._file, b" " * self.SIZE)

    def write(self, value: dict[str, object], *, durable: bool) -> None:
        """Write the record into the space; ``durable`` waits for the disk. Raises OSError."""
        data = json.dumps(value).encode()
        if len(data) > self.SIZE:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        os.pwrite(self._file, data.ljust(self.SIZE), 0)
        if durable:
            os.fsync(self._file)
        os.rename(self._kept, self._name, src_dir_fd=self._where, dst_dir_fd=self._where)
        if durable:
            os.fsync(self._where)
        self._close()

    def give_back(self) -> None:
        """Remove the unused file."""
        with contextlib.suppress(OSError):
            os.unlink(self._kept, dir_fd=self._where)
        self._close()

    def _close(self) -> None:
        os.close(self._file)
        os.close(self._where)


def _write_all(file: int, data: bytes) -> None:
    """Write all bytes: on a disk that fills up, a single write may be partial without an error."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def open_regular(path: str) -> int:
    """Open a file for reading. Raises OSError for a link, pipe or device in its place."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} is not a regular file")
    return file


def read(folder: str, name: str) -> dict[str, object] | None:
    """Return a record, or None if it is missing, damaged, too large or not a regular file.

    Raises:
        OSError: The machine cannot read it now (``machine_faults``); it may exist.
    """
    try:
        file = open_regular(os.path.join(folder, name))
        try:
            value = json.loads(os.read(file, LIMIT))
        finally:
            os.close(file)
    except (OSError, ValueError, RecursionError) as error:
        if machine_faults.number_of(error) is not None:
            raise
        return None
    return value if isinstance(value, dict) else None
