"""Reading of a log with a size limit, by the offsets of its stream (see ``log_files``)."""

from __future__ import annotations

import os
from pathlib import Path

from . import records
from .log_files import HEAD, MARK, MARKS, PREFIX, mark_interval


def pieces(folder: Path) -> list[tuple[int, str]]:
    """Return (first offset, file name) of the files on disk, in order."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [(0, HEAD)] if HEAD in names else []
    numbers = ((name.removeprefix(PREFIX), name) for name in names if name.startswith(PREFIX))
    found += [(int(number), name) for number, name in numbers if number.isdecimal()]
    return sorted(found)


def size(folder: Path) -> int:
    """Return the length of the whole stream so far, dropped bytes included."""
    for first, name in reversed(pieces(folder)):
        try:
            return first + os.stat(folder / name, follow_symlinks=False).st_size
        except OSError:
            continue
    return 0


def offset_at(folder: Path, at: float) -> int:
    """Return the first offset that was written at ``at`` (seconds since the epoch) or later.

    It may be early, by at most the interval of one mark; never late.
    """
    try:
        file = records.open_regular(str(folder / MARKS))
    except OSError:
        return size(folder)
    try:
        data = os.read(file, os.fstat(file).st_size)
    finally:
        os.close(file)
    for index, (when, offset) in enumerate(
        MARK.iter_unpack(data[: len(data) // MARK.size * MARK.size])
    ):
        if at < when + mark_interval(index):
            return int(offset)
    return size(folder)


def read(folder: Path, offset: int, limit: int) -> tuple[int, bytes]:
    """Return the first stored offset at or after ``offset``, and bytes from it.

    A log above its size limit has lost its middle, so the answer may begin later.
    """
    for _ in range(3):  # a segment may be dropped between listing and opening
        found = pieces(folder)
        try:
            return _read(folder, found, offset, limit)
        except FileNotFoundError:
            continue
        except OSError:
            break
    return offset, b""


def _read(folder: Path, found: list[tuple[int, str]], offset: int, limit: int) -> tuple[int, bytes]:
    for number, (first, name) in enumerate(found):
        following = found[number + 1][0] if number + 1 < len(found) else None
        if following is not None and offset >= following:
            continue
        start = max(first, offset)
        data = _bytes(folder / name, start - first, limit)
        if data:
            return start, data
        # At the end of this file: the next bytes, perhaps after a gap, are in the next file.
    return offset, b""


def _bytes(path: Path, position: int, limit: int) -> bytes:
    file = records.open_regular(str(path))
    try:
        return os.pread(file, limit, position)
    finally:
        os.close(file)
