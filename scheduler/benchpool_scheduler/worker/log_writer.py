"""Writing of a log with a size limit, and rate limiting of the worker's output."""

from __future__ import annotations

import contextlib
import os
import time

from .log_files import BOUND, COARSE_S, HEAD, MARK, MARKS, SEGMENTS, mark_interval, segment_name

RATE = 32 * 1024 * 1024
BURST = 64 * 1024 * 1024
"""Rate limit of a worker's output in bytes per second, and burst in bytes."""


class LogWriter:
    """Appends a stream to the log in ``folder``, with at most about ``bound`` bytes on disk."""

    def __init__(self, folder: str, bound: int = BOUND) -> None:
        self._folder = folder
        self._head = max(bound // 2, 1)
        self._segment = max((bound - self._head) // SEGMENTS, 1)
        self._kept: list[str] = []
        self._offset = 0
        self._room = self._head
        self._file = self._create(HEAD)
        self._marks = self._create(MARKS)
        self._marked = 0
        self._next_mark = 0.0

    def write(self, data: bytes) -> None:
        """Append bytes; on a full disk they are dropped, and the offsets stay correct."""
        self._mark(time.time())
        view = memoryview(data)
        while view:
            if self._room == 0 and not self._turn():
                self._offset += len(view)
                return
            part = view[: self._room]
            try:
                done = os.write(self._file, part)
            except OSError:
                done = len(part)
                # Leave a hole, so that later bytes keep their offsets.
                os.lseek(self._file, done, os.SEEK_CUR)
            self._offset += done
            self._room -= done
            view = view[done:]

    def write_line(self, sentence: str) -> None:
        """Append a line of benchpool's own."""
        self.write(f"benchpool: {sentence}\n".encode())

    def close(self) -> None:
        """Close the files in use."""
        os.close(self._file)
        os.close(self._marks)

    def _mark(self, now: float) -> None:
        """Record the time of this offset, unless a mark covers it already."""
        # After the clock was set back, marks are written again at once.
        if self._next_mark - COARSE_S <= now < self._next_mark:
            return
        with contextlib.suppress(OSError):
            os.write(self._marks, MARK.pack(now, self._offset))
            self._next_mark = now + mark_interval(self._marked)
            self._marked += 1

    def _turn(self) -> bool:
        """Start a new segment and drop the oldest one; return False if that fails."""
        name = segment_name(self._offset)
        if len(self._kept) >= SEGMENTS:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._folder, self._kept.pop(0)))
        try:
            file = self._create(name)
        except OSError:
            return False
        os.close(self._file)
        self._file = file
        self._room = self._segment
        self._kept.append(name)
        return True

    def _create(self, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(os.path.join(self._folder, name), flags, 0o600)


class TokenBucket:
    """Token bucket on the monotonic clock; returns the wait before more may be taken."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._at = now

    def take(self, amount: int, now: float) -> None:
        """Take ``amount``, on credit if necessary."""
        self._level = min(self._burst, self._level + (now - self._at) * self._rate) - amount
        self._at = now

    def wait(self, now: float) -> float:
        """Return the seconds until tokens are available; 0 if they are now."""
        level = self._level + (now - self._at) * self._rate
        return 0.0 if level > 0 else -level / self._rate + 0.001
