"""Records that must be written even on a full disk, because their contents exist nowhere else."""

from __future__ import annotations

import contextlib
import time

from .. import machine_faults, records
from . import causes

DISK_S = 600.0
"""Timeout for a disk that rejects even the reserved record of the end, in seconds."""


def end(
    code: int | None, by: str, text: str | None, started: float | None, tail: bytes = b""
) -> dict[str, object]:
    """Return the record of an end now; ``tail`` is the end of the worker's output."""
    words: dict[str, object] = {"version": 1, "exit_code": code, "by": by, "text": text}
    return {**words, "started": started, "ended": time.time(), **causes.found(code, by, tail)}


def add_undelivered(
    last_words: KeptRecord, record: dict[str, object], undelivered: str | None
) -> None:
    """Add to the record of a success that its results were not delivered.

    Args:
        undelivered: See ``results.SentResults``. The record of a failure is left unchanged: it
        gives
            the cause of the failure, and the log has the rest.
    """
    if undelivered is not None and record["exit_code"] == 0 and record["text"] is None:
        with contextlib.suppress(OSError):
            last_words.write({**record, "text": undelivered}, durable=True)


class KeptRecord:
    """A record with space that is reserved before the command runs."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        self._reserve: records.Reserve | None = None

    def reserve(self) -> None:
        """Reserve space on the disk. Raises OSError."""
        self._reserve = records.Reserve(self._folder, self._name)

    def write(self, record: dict[str, object], *, durable: bool, patience_s: float = 0.0) -> None:
        """Write the record, with retries after faults of the machine. Raises OSError."""
        last = time.monotonic() + patience_s
        while True:
            try:
                self._write(record, durable)
                return
            except OSError as error:
                if machine_faults.number_of(error) is None or time.monotonic() >= last:
                    raise
                time.sleep(1.0)

    def give_back(self) -> None:
        """Release unused space."""
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            reserve.give_back()

    def _write(self, record: dict[str, object], durable: bool) -> None:
        if self._reserve is not None:
            try:
                self._reserve.write(record, durable=durable)
                self._reserve = None
                return
            except OSError:
                self.give_back()
        records.write(self._folder, self._name, record, durable=durable)
