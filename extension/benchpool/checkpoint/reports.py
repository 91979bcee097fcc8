"""Progress of the job, as panel, widget and terminal show it."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping

TEXT_LENGTH = 200
METRICS = 50


def progress(
    fraction: float | None = None,
    text: str | None = None,
    metrics: Mapping[str, float] | None = None,
) -> None:
    """Report how far the job is.

    Never fails: what cannot be shown is left out, so that reporting ends no training.

    Args:
        fraction: 0 to 1; None when it is not known.
        text: One line for people, at most 200 characters.
        metrics: Numbers by name, at most 50.

    With several processes a worker, the first one's report counts.
    """
    global by_program
    by_program = True
    write(fraction, text, metrics)


by_program = False
"""True once the program has reported its progress itself."""
FOLLOW_S = 1.0
_followed = 0.0
_said = ""


def follow(fraction: float | None, text: str) -> None:
    """Report for the program how far it is, as long as it does not do so itself.

    Once a second, and its end at once: nothing may come after it.
    """
    global _followed, _said
    now = time.monotonic()
    ends = fraction is not None and fraction >= 1 and _said != text
    if not by_program and (ends or now - _followed >= FOLLOW_S):
        _followed, _said = now, text
        write(fraction, text)


def write(
    fraction: float | None = None,
    text: str | None = None,
    metrics: Mapping[str, float] | None = None,
) -> None:
    """Write a report, see ``progress``."""
    path = os.environ.get("BENCHPOOL_PROGRESS_FILE")
    if not path or os.environ.get("LOCAL_RANK", "0") != "0":
        return
    report = {
        "fraction": _share(fraction),
        "text": None if text is None else " ".join(str(text).split())[:TEXT_LENGTH],
        "metrics": dict(list(_numbers(metrics or {}).items())[:METRICS]),
    }
    aside = f"{path}.{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(report, file)
        os.replace(aside, path)
    except OSError:
        return  # a full disk must not end the training that it slows down


def _share(value: object) -> float | None:
    number = _number(value)
    return None if number is None else min(1.0, max(0.0, number))


def _numbers(metrics: Mapping[str, object]) -> dict[str, float]:
    found = {str(name): _number(value) for name, value in metrics.items()}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
