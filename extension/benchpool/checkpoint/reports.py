"""Progress of the job, as shown by the panel, the widget and the terminal."""

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
    """Report the progress of the job.

    Never raises: a report that cannot be written is dropped, so that reporting ends no training.

    Args:
        fraction: Part that is done, 0 to 1; None if unknown.
        text: One line for users, at most 200 characters.
        metrics: Numbers by name, at most 50.

    With several processes in a worker, the report of the first one counts.
    """
    global by_program
    by_program = True
    write(fraction, text, metrics)


by_program = False
"""True after the program has reported progress itself."""
FOLLOW_S = 1.0
_followed = 0.0
_last_text = ""


def follow(fraction: float | None, text: str) -> None:
    """Report progress for the program, unless the program reports itself.

    Reports at most once a second, and the end at once, since no later report may follow.
    """
    global _followed, _last_text
    now = time.monotonic()
    ends = fraction is not None and fraction >= 1 and _last_text != text
    if not by_program and (ends or now - _followed >= FOLLOW_S):
        _followed, _last_text = now, text
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
