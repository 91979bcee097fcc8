"""How the pages say times, amounts and states; pure, and the same words everywhere.

>>> duration(42), duration(754), duration(11100), duration(187200)
('42 s', '12 min', '3 h 05 min', '2 d 4 h')
>>> count(1, "GPU"), count(4, "GPU")
('1 GPU', '4 GPUs')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from benchpool_scheduler.contract import EstimatedStart, GpuState, State

NOT_KNOWN = "not known yet"


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time for a ``time`` element: machine form, exact words, relative words."""

    iso: str
    exact: str
    relative: str


@dataclass(frozen=True, slots=True)
class StateWord:
    """How one state of a GPU is shown: word, letter and the name of its shape and colour."""

    word: str
    letter: str
    style: str


GPU_WORDS: Mapping[GpuState, StateWord] = {
    GpuState.TRAIN_WITHIN_QUOTA: StateWord("train, within quota", "T", "train"),
    GpuState.TRAIN_OVER_QUOTA: StateWord("train, over quota", "O", "over"),
    GpuState.BUILD_HELD: StateWord("bench, in use", "B", "bench"),
    GpuState.BUILD_FREE: StateWord("bench, kept free", "K", "kept"),
    GpuState.FREE: StateWord("free", "F", "free"),
    GpuState.FOREIGN: StateWord("used by others", "X", "foreign"),
    GpuState.BROKEN: StateWord("broken", "!", "broken"),
}
"""In the order of the legend: from work to trouble."""

WAITING_STATES = frozenset({State.QUEUED})
ACTIVE_STATES = frozenset({State.STARTING, State.RUNNING, State.PAUSING})
ENDED_STATES = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})


def count(number: int, noun: str) -> str:
    """Return ``1 GPU`` or ``4 GPUs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """Return a length of time in one or two units; negative counts as zero."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def relative(at: datetime, now: datetime) -> str:
    """Return ``12 min ago`` or ``in 5 min``; ``times.js`` says the same."""
    seconds = (now - at).total_seconds()
    if abs(seconds) < 5:
        return "just now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def moment(at: datetime, now: datetime) -> Moment:
    """Return ``at`` for a ``time`` element; exact in UTC until a script sets the zone."""
    utc = at.astimezone(UTC)
    return Moment(
        iso=utc.isoformat(timespec="seconds").replace("+00:00", "Z"),
        exact=f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        relative=relative(at, now),
    )


def optional_moment(at: datetime | None, now: datetime) -> Moment | None:
    """Return ``moment`` of a time that may be missing."""
    return None if at is None else moment(at, now)


def estimate(start: EstimatedStart | None, now: datetime) -> str:
    """Return the start as a range, or that it is not known yet (R22)."""
    if start is None:
        return NOT_KNOWN
    low = None if start.earliest is None else (start.earliest - now).total_seconds()
    high = None if start.latest is None else (start.latest - now).total_seconds()
    if low is not None and high is not None:
        return _range(low, high)
    if high is not None:
        return f"within {duration(high)}"
    if start.likely is not None:
        return f"in about {duration((start.likely - now).total_seconds())}"
    if low is not None:
        return f"in {duration(low)} or later"
    return NOT_KNOWN


def _range(low: float, high: float) -> str:
    if high < 5:
        return "any moment"
    if low < 1:
        return f"within {duration(high)}"
    first, last = duration(low), duration(high)
    if first == last:
        return f"in about {last}"
    number, _, unit = first.partition(" ")
    if unit == last.partition(" ")[2] and " " not in unit:
        return f"in {number}–{last}"
    return f"in {first} – {last}"


def gpus_per_job(gpus: int, workers: int) -> str:
    """Return ``4 GPUs``, or ``8 GPUs (2 × 4)`` for a gang, its product unbroken."""
    if workers == 1:
        return count(gpus, "GPU")
    return f"{count(gpus * workers, 'GPU')} ({workers} × {gpus})"


def ordinal(number: int) -> str:
    """Return ``1st``, ``2nd``, ``11th``."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
