"""Atomic, durable appends to a file of lines."""

from __future__ import annotations

import os


def append_whole(descriptor: int, data: bytes, before: int) -> None:
    """Append ``data`` to a file and flush it to disk.

    Args:
        descriptor: The file, open for appending.
        before: The current size in bytes; the file is truncated to it when the write fails.

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
