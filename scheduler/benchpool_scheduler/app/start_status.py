"""How far a start of the scheduler has come: a small file that ``benchpool up`` follows.

A pool of many jobs takes its time, and a start may fail. Who waits for it needs to know which:
``<state>/scheduler/start.json`` is replaced whole at each step.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

EVERY_S = 0.2
"""The file is written at most this often while records are read."""


class StartStatus(msgspec.Struct, frozen=True):
    """One look at a start.

    Attributes:
        pid: The process that starts.
        step: Number of the present step, counted from 0; a larger one is further.
        text: What goes on, in words.
        done: How many records of ``of`` this step has gone through.
        ready: It serves.
        failed: Why it cannot start, as a sentence; None while it can.
        exit_status: With what it ends then (formats, section 5).
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
        """What goes on, for people.

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
    """Return where the file is."""
    return state / "scheduler" / "start.json"


def read(state: Path) -> StartStatus | None:
    """Return what the file says; None where there is none that can be read."""
    try:
        return msgspec.json.decode(path_of(state).read_bytes(), type=StartStatus)
    except (OSError, msgspec.DecodeError):
        return None


class StartReport:
    """Writes the file of one start.

    Attributes:
        now: What it says.
    """

    def __init__(self, state: Path) -> None:
        self._path = path_of(state)
        self._written = 0.0
        self.now = StartStatus(os.getpid())
        self._write()

    def step(self, text: str) -> None:
        """Say that the next step has begun."""
        self.now = StartStatus(self.now.pid, self.now.step + 1, text)
        self._write()

    def count(self, done: int, of: int) -> None:
        """Say how far the present step has come; from whatever thread does it."""
        self.now = msgspec.structs.replace(self.now, done=done, of=of)
        if time.monotonic() - self._written > EVERY_S:
            self._write()

    def ready(self) -> None:
        """Say that it serves."""
        self.now = StartStatus(self.now.pid, self.now.step + 1, "runs", ready=True)
        self._write()

    def failed(self, sentence: str, exit_status: int = 1) -> None:
        """Say why it cannot start, or why it ends."""
        self.now = msgspec.structs.replace(
            self.now, failed=sentence, exit_status=exit_status, ready=False
        )
        self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        temporary = self._path.with_name(f".{self._path.name}.new")
        # Where nothing can be written, nobody learns of it here; the start itself says why.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary.write_bytes(msgspec.json.encode(self.now))
            temporary.chmod(0o600)
            temporary.replace(self._path)
