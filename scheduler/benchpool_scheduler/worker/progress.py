"""What a worker says of itself, and when it last saved: read with distrust."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import records

TEXT_LIMIT = 500
METRICS_LIMIT = 100
NAME_LIMIT = 100
ENTRIES_LIMIT = 1000


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


def checkpoint_time(folder: Path) -> float | None:
    """Return when something in the checkpoint folder was last written; None while it is empty.

    Seconds since the epoch. Only the folder's own entries count, so that the look stays cheap.
    """
    latest: float | None = None
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= ENTRIES_LIMIT:
                    break
                at = entry.stat(follow_symlinks=False).st_mtime
                latest = at if latest is None else max(latest, at)
    except OSError:
        return latest
    return latest
