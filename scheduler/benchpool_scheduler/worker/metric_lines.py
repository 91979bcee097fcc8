"""What a worker reports of itself step by step: lines that it appends, read with distrust.

A line is ``{"at": SECONDS, "step": N, "values": {NAME: NUMBER}}``; ``step`` may be missing, and a
number may be null where it is not finite. A writer may rename a file that has grown long to
``metrics.jsonl.before``, in place of the one before, and begin another. The ``metrics`` of a
progress file that was written anew count as a line without a step.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from . import progress, records

PIECE = 256 * 1024
VALUES = 1_000
"""Most bytes that are read at a look, and about the most values that are taken."""
BEHIND = 8 * 1024 * 1024
"""Who is behind by more than this goes on with the newest piece: a flood is not kept."""
LINE = 64 * 1024
"""Longest line, bytes; what is longer is left out."""
NAMES = progress.METRICS_LIMIT
LATEST = 1e11
"""Times are below this, in seconds since the epoch."""


class ReportedValue(NamedTuple):
    """A value: ``at`` in seconds since the epoch; None where it is no finite number."""

    name: str
    value: float | None
    at: float
    step: int | None


class MetricReader:
    """Reads what is new below an exchange folder; the same again after a restart of the reader.

    Args:
        speaks: The metrics of the progress file count: it is the gang's first worker.
    """

    def __init__(self, exchange: Path, *, speaks: bool) -> None:
        self._exchange = exchange
        self._speaks = speaks
        self._inode: int | None = None
        self._offset = 0
        self._progress: object = None

    def read(self) -> list[ReportedValue]:
        """Return what is new, oldest first: at most a piece; nothing when there is no more.

        Errors: OSError where the machine cannot read it now.
        """
        found = self._lines()
        written = progress.signature(self._exchange)
        if self._speaks and written is not None and written != self._progress:
            self._progress = written
            said = progress.read_progress(self._exchange)
            at = written[1] / 1e9
            found += (
                ReportedValue(name, value, at, None)
                for name, value in ({} if said is None else said.metrics).items()
            )
        return found

    def _lines(self) -> list[ReportedValue]:
        """Return what whole lines say, from where the last look ended."""
        current = self._exchange / records.METRICS
        before = self._exchange / records.METRICS_BEFORE
        now = _inode(current)
        if now is not None and now == self._inode:
            return self._piece(current)
        # It has begun another file: the one before is read to its end first.
        return self._piece(before) or ([] if now is None else self._piece(current))

    def _piece(self, path: Path) -> list[ReportedValue]:
        try:
            file = records.open_regular(str(path))
        except OSError:
            return []
        try:
            facts = os.fstat(file)
            if facts.st_ino != self._inode:
                self._inode, self._offset = facts.st_ino, 0
            if facts.st_size - self._offset > BEHIND:
                self._offset = facts.st_size - PIECE
            data = os.pread(file, PIECE, self._offset)
        finally:
            os.close(file)
        *whole, rest = data.split(b"\n")
        if not whole and len(rest) == PIECE:
            self._offset += PIECE  # a line without end
        found: list[ReportedValue] = []
        for line in whole:
            self._offset += len(line) + 1
            found += _values(line)
            if len(found) >= VALUES:
                break
        return found


def _inode(path: Path) -> int | None:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None


def _values(line: bytes) -> Iterator[ReportedValue]:
    if len(line) > LINE:
        return
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(said, dict) and isinstance(values := said.get("values"), dict):
        yield from _of_line(said, values)


def _of_line(
    said: Mapping[str, object], values: Mapping[object, object]
) -> Iterator[ReportedValue]:
    at, step = said.get("at"), said.get("step")
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
