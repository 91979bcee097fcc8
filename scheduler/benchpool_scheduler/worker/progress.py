"""Progress that a worker reports, and its last checkpoint: read as untrusted input."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from . import records

TEXT_LIMIT = 500
METRICS_LIMIT = 100
NAME_LIMIT = 100
ENTRIES_LIMIT = 1000
STEP_LIMIT = 10**15

MANIFEST = "benchpool.json"
"""Manifest of ``benchpool.checkpoint``, in a folder named by its number."""
STEP_IN_NAME = re.compile(r"checkpoint-([0-9]{1,15})")
"""Folder names of checkpoints of transformers."""


@dataclass(frozen=True, slots=True)
class ReportedProgress:
    """Progress as a worker reports it; ``fraction`` is between 0 and 1."""

    fraction: float | None = None
    text: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def read_progress(exchange: Path) -> ReportedProgress | None:
    """Return the contents of the progress file, or None if it is missing or invalid."""
    value = records.read(str(exchange), records.PROGRESS)
    if value is None:
        return None
    text, metrics = value.get("text"), value.get("metrics")
    fraction = _number(value.get("fraction"))
    return ReportedProgress(
        None if fraction is None else min(1.0, max(0.0, fraction)),
        text[:TEXT_LIMIT] if isinstance(text, str) else None,
        _numbers(metrics) if isinstance(metrics, dict) else {},
    )


def _numbers(metrics: Mapping[object, object]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in metrics.items():
        number = _number(value)
        if isinstance(name, str) and number is not None and len(found) < METRICS_LIMIT:
            found[name[:NAME_LIMIT]] = number
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def signature(exchange: Path) -> tuple[int, int, int] | None:
    """Return a value that changes when the progress file is rewritten, or None without a file."""
    try:
        facts = os.lstat(exchange / records.PROGRESS)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """Time of a job's last save, in seconds since the epoch, and its step if known."""

    at: float
    step: int | None = None


def last_checkpoint(folder: Path) -> SavedCheckpoint | None:
    """Return the last save in the checkpoint folder, or None while it is empty.

    Only the folder's direct entries count, which keeps the call cheap. Hidden entries are ignored,
    because they are incomplete (``benchpool.checkpoint`` renames complete ones).
    """
    latest: float | None = None
    newest: tuple[float, str] | None = None
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, ENTRIES_LIMIT):
            if entry.name.startswith("."):
                continue
            at = entry.stat(follow_symlinks=False).st_mtime
            latest = at if latest is None else max(latest, at)
            if entry.is_dir(follow_symlinks=False):
                newest = max(newest or (at, entry.name), (at, entry.name))
    if latest is None:
        return None
    return SavedCheckpoint(latest, None if newest is None else _step(folder, newest[1]))


def _step(folder: Path, name: str) -> int | None:
    """Return the step of a checkpoint, from its name or its manifest, or None."""
    named = STEP_IN_NAME.fullmatch(name)
    if named is not None:
        return int(named[1])
    value = records.read(str(folder / name), MANIFEST) if name.isdecimal() else None
    step = None if value is None else value.get("step")
    if isinstance(step, bool) or not isinstance(step, int):
        return None
    return step if 0 <= step <= STEP_LIMIT else None
