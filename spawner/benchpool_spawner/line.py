"""Status of a queued server, as a sentence and as data (pure)."""

from __future__ import annotations

from datetime import datetime

import msgspec

from benchpool_scheduler.contract import LinePlace
from benchpool_scheduler.phrases import NOT_KNOWN, start_sentence


def sentence(place: LinePlace, now: datetime) -> str:
    """Return the queue position, the reason and the estimated wait as text."""
    parts = [f"{_position(place)}: {place.reason.text}"]
    estimate = _estimate(place, now)
    if estimate:
        parts.append(estimate)
    return " ".join(parts)


def queue(place: LinePlace) -> dict[str, object]:
    """Return the queue position as data, for the page and REST clients."""
    found: dict[str, object] = msgspec.to_builtins(place)
    return found


def _position(place: LinePlace) -> str:
    if place.position == 1:
        return (
            "You are next" if place.length == 1 else f"You are next of {place.length} in the queue"
        )
    return f"You are number {place.position} of {place.length} in the queue"


def _estimate(place: LinePlace, now: datetime) -> str:
    start = start_sentence(place.estimated_start, now)
    return "" if start == NOT_KNOWN else f"It starts {start}."
