"""What a worker says of itself, and when it last saved: read with distrust."""

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
"""Of ``benchpool.checkpoint``, in a folder whose name is its number."""
STEP_IN_NAME = re.compile(r"checkpoint-([0-9]{1,15})")
"""As transformers names what it saves."""


@dataclass(frozen=True, slots=True)
class ReportedProgress:
    """A worker's own words; ``fraction`` is between 0 and 1."""

    fraction: float | None = None
    text: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def read_progress(exchange: Path) -> ReportedProgress | None:
    """Return what the progress file says; None when it is missing or makes no sense."""
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
    """Return what changes when the progress file is written again; None when there is none."""
    try:
        facts = os.lstat(exchange / records.PROGRESS)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """When a job last saved, in seconds since the epoch, and at which step where that is known."""

    at: float
    step: int | None = None


def last_checkpoint(folder: Path) -> SavedCheckpoint | None:
    """Return what was last written into the checkpoint folder; None while it is empty.

    Only the folder's own entries count, so that the look stays cheap. Hidden ones do not: they are
    still being written (``benchpool.checkpoint`` renames what is whole).
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
    """Return at which step a checkpoint was saved, by its name or its manifest."""
    named = STEP_IN_NAME.fullmatch(name)
    if named is not None:
        return int(named[1])
    value = records.read(str(folder / name), MANIFEST) if name.isdecimal() else None
    step = None if value is None else value.get("step")
    if isinstance(step, bool) or not isinstance(step, int):
        return None
    return step if 0 <= step <= STEP_LIMIT else None
