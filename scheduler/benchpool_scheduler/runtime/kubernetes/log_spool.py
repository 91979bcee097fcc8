"""Logs of workers as their agents send them, in the same files as on a workstation.

The files show the length of the log so far, so that agents send missing bytes to a restarted
scheduler, or to another replica with an empty folder. A gap contains bytes that the agent's own
limit dropped. It becomes a new segment.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.worker import log_reader
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.log_files import (
    FINE_S,
    HEAD,
    MARK,
    MARKS,
    PREFIX,
    SEGMENTS,
    segment_name,
)


class LogSpool:
    """Writer of the logs in the state folder.

    Args:
        bound: Most bytes of one worker's log on disk. Half of it is for the beginning of the log,
            the rest for its newest part.
    """

    def __init__(self, folders: Folders, bound: int) -> None:
        self._folders = folders
        self._head = max(bound // 2, 1)
        self._segment = max((bound - self._head) // SEGMENTS, 1)

    def append(self, worker: WorkerId, offset: int, data: bytes) -> int:
        """Append bytes from ``offset`` on and return the offset of the next ones.

        Bytes that are stored already are skipped.
        """
        folder = self._folders.make(worker, passable=False)
        have = log_reader.size(folder)
        if offset < have:
            data, offset = data[have - offset :], have
        if not data:
            return have
        self._mark(folder, offset)
        at, rest = offset, memoryview(data)
        while rest:
            name, capacity = self._place(folder, at)
            self._write(folder / name, rest[:capacity])
            at += min(capacity, len(rest))
            rest = rest[capacity:]
        self._drop(folder)
        return at

    def _place(self, folder: Path, offset: int) -> tuple[str, int]:
        """Return the file for bytes at ``offset``, and how many bytes fit into it."""
        found = log_reader.pieces(folder)
        if not found and offset == 0:
            return HEAD, self._head
        if found:
            first, name = found[-1]
            length = (folder / name).stat().st_size
            most = self._head if name == HEAD else self._segment
            if first + length == offset and length < most:
                return name, most - length
        return segment_name(offset), self._segment

    def _write(self, path: Path, data: memoryview) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            file.write(data)

    def _drop(self, folder: Path) -> None:
        segments = [name for _, name in log_reader.pieces(folder) if name.startswith(PREFIX)]
        for name in segments[: max(0, len(segments) - SEGMENTS)]:
            (folder / name).unlink(missing_ok=True)

    def _mark(self, folder: Path, offset: int) -> None:
        """Record the time of this offset, at most once per second."""
        path, now = folder / MARKS, time.time()
        with contextlib.suppress(OSError):
            if path.exists() and now - path.stat().st_mtime < FINE_S:
                return
        self._write(path, memoryview(MARK.pack(now, offset)))
