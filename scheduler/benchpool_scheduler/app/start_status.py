"""Progress of a scheduler start: a small file that ``benchpool up`` follows.

A pool with many jobs needs time to start, and a start may fail. The file shows which is the case:
``<state>/scheduler/start.json`` is replaced atomically at each step.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

EVERY_S = 0.2
"""Minimum interval between two writes while records are read, in seconds."""


class StartStatus(msgspec.Struct, frozen=True):
    """Status of a start.

    Attributes:
        pid: ID of the starting process.
        step: Number of the current step, counted from 0. It only grows.
        text: Current step, in words.
        done: Number of records of ``of`` that this step has processed.
        ready: Whether the scheduler serves requests.
        failed: Why it cannot start, as a sentence, or None.
        exit_status: Exit status after a failure (formats, section 5).
    """

    pid: int
    step: int = 0
    text: str = "is starting"
    done: int = 0
    of: int = 0
    ready: bool = False
    failed: str | None = None
    exit_status: int = 1

    @property
    def sentence(self) -> str:
        """Status as a sentence for users.

        >>> StartStatus(1, text="reads its jobs", done=40_000, of=100_000).sentence
        'The scheduler reads its jobs: 40,000 of 100,000.'
        >>> StartStatus(1).sentence
        'The scheduler is starting.'
        """
        if self.failed is not None:
            return self.failed
        counted = f": {self.done:,} of {self.of:,}" if self.of else ""
        return f"The scheduler {self.text}{counted}."


def path_of(state: Path) -> Path:
    """Return the path of the file."""
    return state / "scheduler" / "start.json"


def read(state: Path) -> StartStatus | None:
    """Return the status in the file, or None without a readable file."""
    try:
        return msgspec.json.decode(path_of(state).read_bytes(), type=StartStatus)
    except (OSError, msgspec.DecodeError):
        return None


class StartReport:
    """Writer of the status file of one start.

    Attributes:
        now: Status as last written.
    """

    def __init__(self, state: Path) -> None:
        self._path = path_of(state)
        self._written = 0.0
        self.now = StartStatus(os.getpid())
        self._write()

    def step(self, text: str) -> None:
        """Report the start of the next step."""
        self.now = StartStatus(self.now.pid, self.now.step + 1, text)
        self._write()

    def count(self, done: int, of: int) -> None:
        """Report the progress of the current step. May be called from any thread."""
        self.now = msgspec.structs.replace(self.now, done=done, of=of)
        if time.monotonic() - self._written > EVERY_S:
            self._write()

    def ready(self) -> None:
        """Report that the scheduler serves requests."""
        self.now = StartStatus(self.now.pid, self.now.step + 1, "runs", ready=True)
        self._write()

    def failed(self, sentence: str, exit_status: int = 1) -> None:
        """Report why the scheduler cannot start, or why it ends."""
        self.now = msgspec.structs.replace(
            self.now, failed=sentence, exit_status=exit_status, ready=False
        )
        self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        temporary = self._path.with_name(f".{self._path.name}.new")
        # A failed write is not reported here: the start itself reports the reason.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary.write_bytes(msgspec.json.encode(self.now))
            temporary.chmod(0o600)
            temporary.replace(self._path)
