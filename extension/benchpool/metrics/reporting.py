"""Writes the metrics of a program into the file that the pool reads, with a rate limit."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Mapping

from benchpool.metrics.numbers import numbers_of, step_of

BURST = 1_000
"""Number of reports that are written without a rate limit."""
RATE = 20.0
"""Rate limit after that, in reports per second; in between the newest value of each name counts."""
MOST_BYTES = 8 << 20
"""Size limit of the file, in bytes; a larger file replaces the previous rotated one.

A burst of 100 long names exceeds it once, so the pool has half a minute to read each file.
"""


def log(
    values: Mapping[str, object] | None = None,
    *,
    step: object = None,
    all_ranks: bool = False,
    **named: object,
) -> None:
    """Report numbers of this step: ``benchpool.log(loss=loss, step=step)``.

    Never raises: values that are not numbers are left out, so that reporting ends no training.
    Numbers that are not finite are shown as such. If a job resumes at an older step after a pause,
    its new values replace the later ones. Without a step, the reports are numbered in order.

    Args:
        values: Numbers by name, for names that are not valid in Python: ``{"train/loss": 0.5}``.
        step: Integer from 0 that rises through the whole training.
        all_ranks: Report from every process of the job, under separate names. By default only the
            first process reports.
    """
    global by_program
    by_program = True
    report({**(values or {}), **named}, step, all_ranks=all_ranks)


by_program = False
"""True after the program has reported metrics itself."""


def report(values: Mapping[str, object], step: object, *, all_ranks: bool = False) -> None:
    """Report values, see ``log``."""
    rank = _rank()
    if rank and not all_ranks:
        return
    found = numbers_of(values)
    if rank:
        found = {f"{name} (rank {rank})": value for name, value in found.items()}
    if found:
        _writer.report(found, step_of(step))


def _rank() -> int:
    """Return the number of this process in the job; 0 for the first or only one."""
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        if (text := os.environ.get(name, "")).isdecimal():
            return int(text)
    node, local = (os.environ.get(name, "") for name in ("NODE_RANK", "LOCAL_RANK"))
    return next((int(text) for text in (local, node) if text.isdecimal() and int(text)), 0)


class MetricWriter:
    """Writer of lines to the file ``BENCHPOOL_METRICS_FILE``; does nothing outside a job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._room = float(BURST)
        self._counted = time.monotonic()
        self._waiting: dict[str, tuple[int | None, float, float | None]] = {}
        self._timer: threading.Timer | None = None

    def report(self, values: Mapping[str, float | None], step: int | None) -> None:
        """Write these values now, or after a short delay."""
        if not os.environ.get("BENCHPOOL_METRICS_FILE"):
            return
        at = time.time()
        with self._lock:
            self._waiting.update({name: (step, at, value) for name, value in values.items()})
            if self._has_room():
                self._write()
            elif self._timer is None:
                self._timer = threading.Timer(1.0 / RATE, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Write the waiting values."""
        with self._lock:
            self._timer = None
            self._write()

    def reset_after_fork(self) -> None:
        """Discard the waiting values in a forked process, since its parent writes them."""
        self.__init__()  # type: ignore[misc]

    def _has_room(self) -> bool:
        now = time.monotonic()
        self._room = min(float(BURST), self._room + (now - self._counted) * RATE)
        self._counted = now
        if self._room < 1.0:
            return False
        self._room -= 1.0
        return True

    def _write(self) -> None:
        """Write one line for each waiting step and time."""
        path = os.environ.get("BENCHPOOL_METRICS_FILE")
        waiting, self._waiting = self._waiting, {}
        together: dict[tuple[int | None, float], dict[str, float | None]] = {}
        for name, (step, at, value) in waiting.items():
            together.setdefault((step, at), {})[name] = value
        lines = [_line(step, at, values) for (step, at), values in together.items()]
        if path and lines:
            _append(path, "".join(lines).encode())


def _line(step: int | None, at: float, values: Mapping[str, float | None]) -> str:
    entry: dict[str, object] = {"at": at, "values": values}
    if step is not None:
        entry["step"] = step
    return json.dumps(entry) + "\n"


def _append(path: str, data: bytes) -> None:
    try:
        # Processes of one worker append to the same file: the first of them rotates it.
        if os.environ.get("LOCAL_RANK", "0") == "0" and _size(path) > MOST_BYTES:
            os.replace(path, f"{path}.before")
        with open(path, "ab", buffering=0) as file:
            file.write(data)
    except OSError:
        return  # a full disk must not end the training that it slows down


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


_writer = MetricWriter()
atexit.register(_writer.flush)
os.register_at_fork(after_in_child=_writer.reset_after_fork)
