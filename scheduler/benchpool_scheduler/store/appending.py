"""Appending to a file of lines: all of it and on disk, or nothing."""

from __future__ import annotations

import os


def append_whole(descriptor: int, data: bytes, before: int) -> None:
    """Write ``data`` at the end of a file and flush it to disk.

    Args:
        descriptor: The file, open for appending.
        before: Its size in bytes now; it has this size again when the write fails.

    Errors: OSError.
    """
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)
        raise
