"""Values that a worker reports step by step: appended lines, read as untrusted input.

A line is ``{"at": SECONDS, "step": N, "values": {NAME: NUMBER}}``. ``step`` may be missing, and a
number may be null if it is not finite. A writer may rename a long file to ``metrics.jsonl.before``,
replacing the previous one, and begin a new file. The ``metrics`` of a rewritten progress file count
as a line without a step.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from . import progress, records

PIECE = 256 * 1024
VALUES = 1_000
"""Limits of one read: bytes, and approximate number of values."""
BACKLOG = 16 * 1024 * 1024
"""Backlog in bytes above which the reader skips to the newest piece.

It exceeds the size at which ``benchpool.metrics`` begins a new file.
"""
LINE = 64 * 1024
"""Longest line, in bytes; longer lines are ignored."""
NAMES = progress.METRICS_LIMIT
LATEST = 1e11
"""Upper limit of valid times, in seconds since the epoch."""


class ReportedValue(NamedTuple):
    """A value: ``at`` in seconds since the epoch; ``value`` is None if it is not finite."""

    name: str
    value: float | None
    at: float
    step: int | None


class MetricReader:
    """Reader of new values below an exchange folder; a new reader returns all values again.

    Args:
        speaks: The metrics of the progress file count: this is the gang's first worker.

    Attributes:
        behind: The last read stopped before the newest value.
    """

    def __init__(self, exchange: Path, *, speaks: bool) -> None:
        self._exchange = exchange
        self._speaks = speaks
        self._inode: int | None = None
        self._offset = 0
        self._progress: object = None
        self.behind = False

    def read(self) -> list[ReportedValue]:
        """Return at most one piece of new values, oldest first; nothing if there are none.

        Raises OSError if the machine cannot read the file now.
        """
        found = self._lines()
        written = progress.signature(self._exchange)
        if self._speaks and written is not None and written != self._progress:
            self._progress = written
            reported = progress.read_progress(self._exchange)
            at = written[1] / 1e9
            found += (
                ReportedValue(name, value, at, None)
                for name, value in ({} if reported is None else reported.metrics).items()
            )
        return found

    def _lines(self) -> list[ReportedValue]:
        """Return the values of complete lines after the end of the last read.

        The current file is opened first. If the worker renames it before the previous one is
        opened, both are the same file, and none is skipped.
        """
        with ExitStack() as files:
            current = _opened(files, self._exchange / records.METRICS)
            if current is None or os.fstat(current).st_ino != self._inode:
                before = _opened(files, self._exchange / records.METRICS_BEFORE)
                if before is not None:
                    found = self._piece(before)
                    if found or self.behind or current is None:
                        self.behind = self.behind or current is not None
                        return found
            self.behind = False
            return [] if current is None else self._piece(current)

    def _piece(self, file: int) -> list[ReportedValue]:
        facts = os.fstat(file)
        if facts.st_ino != self._inode or facts.st_size < self._offset:
            self._inode, self._offset = facts.st_ino, 0
        if facts.st_size - self._offset > BACKLOG:
            self._offset = facts.st_size - PIECE
        data = os.pread(file, PIECE, self._offset)
        *whole, rest = data.split(b"\n")
        if not whole and len(rest) == PIECE:
            self._offset, rest = self._offset + PIECE, b""  # a line that is too long
        found: list[ReportedValue] = []
        for line in whole:
            self._offset += len(line) + 1
            found += _values(line)
            if len(found) >= VALUES:
                break
        self.behind = self._offset + len(rest) < facts.st_size
        return found


def _opened(files: ExitStack, path: Path) -> int | None:
    try:
        file = records.open_regular(str(path))
    except OSError:
        return None
    files.callback(os.close, file)
    return file


def _values(line: bytes) -> Iterator[ReportedValue]:
    if len(line) > LINE:
        return
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(record, dict) and isinstance(values := record.get("values"), dict):
        yield from _of_line(record, values)


def _of_line(
    record: Mapping[str, object], values: Mapping[object, object]
) -> Iterator[ReportedValue]:
    at, step = record.get("at"), record.get("step")
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < LATEST:
        return
    if step is not None and (isinstance(step, bool) or not isinstance(step, int)):
        return
    if step is not None and not 0 <= step < progress.STEP_LIMIT:
        return
    for name, value in list(values.items())[:NAMES]:
        if isinstance(name, str) and (value is None or _is_number(value)):
            number = None if value is None else _finite(value)
            yield ReportedValue(name[: progress.NAME_LIMIT], number, float(at), step)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
