"""The record of the end: it is written whatever becomes of the disk, for it exists nowhere else."""

from __future__ import annotations

import time

from .. import machine_faults, records

DISK_S = 600.0
"""Seconds that the record of the end waits for a disk on which even its reserve is of no use."""


class LastWords:
    """``exit.json``, with room that was reserved for it before the command ran."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._reserve: records.Reserve | None = None

    def reserve(self) -> None:
        """Take room on the disk. Errors: OSError."""
        self._reserve = records.Reserve(self._folder, records.EXIT)

    def write(self, record: dict[str, object], patience_s: float) -> None:
        """Write the record; a fault of the machine is waited for. Errors: OSError."""
        last = time.monotonic() + patience_s
        while True:
            try:
                self._write(record)
                return
            except OSError as error:
                if machine_faults.number_of(error) is None or time.monotonic() >= last:
                    raise
                time.sleep(1.0)

    def _write(self, record: dict[str, object]) -> None:
        if self._reserve is not None:
            try:
                self._reserve.write(record)
                return
            except OSError:
                self._reserve.give_back()
                self._reserve = None
        records.write(self._folder, records.EXIT, record, durable=True)
