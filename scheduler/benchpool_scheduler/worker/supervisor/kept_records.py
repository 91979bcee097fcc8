"""Records that are written whatever becomes of the disk: what they say exists nowhere else."""

from __future__ import annotations

import contextlib
import time

from .. import machine_faults, records
from . import causes

DISK_S = 600.0
"""Seconds that the record of the end waits for a disk on which even its reserve is of no use."""


def end(
    code: int | None, by: str, text: str | None, started: float | None, tail: bytes = b""
) -> dict[str, object]:
    """Return the record of an end now; ``tail`` is the end of what the worker printed."""
    words: dict[str, object] = {"version": 1, "exit_code": code, "by": by, "text": text}
    return {**words, "started": started, "ended": time.time(), **causes.found(code, by, tail)}


def add_undelivered(
    last_words: KeptRecord, record: dict[str, object], undelivered: str | None
) -> None:
    """Add to the record of a success that its results did not come home; it stands as it is, else.

    Args:
        undelivered: As in ``results.SentResults``. A failure says why it failed; its log has the
            rest.
    """
    if undelivered is not None and record["exit_code"] == 0 and record["text"] is None:
        with contextlib.suppress(OSError):
            last_words.write({**record, "text": undelivered}, durable=True)


class KeptRecord:
    """A record with room that is reserved for it before the command runs."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        self._reserve: records.Reserve | None = None

    def reserve(self) -> None:
        """Take room on the disk. Errors: OSError."""
        self._reserve = records.Reserve(self._folder, self._name)

    def write(self, record: dict[str, object], *, durable: bool, patience_s: float = 0.0) -> None:
        """Write the record; a fault of the machine is waited for. Errors: OSError."""
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
        """Leave no room that was not used."""
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
