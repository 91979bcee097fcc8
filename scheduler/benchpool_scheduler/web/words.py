"""Display of times and states on pages: machine form, shape and colour beside the phrase.

``benchpool_scheduler.phrases`` has the phrases.

>>> moment(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)).relative
'1 d ago'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import GpuState, State


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time for a ``time`` element: machine form, exact words, relative words."""

    iso: str
    exact: str
    relative: str


@dataclass(frozen=True, slots=True)
class StateWord:
    """Display of one GPU state: word, letter, and the name of its shape and colour."""

    word: str
    letter: str
    style: str


_SIGNS: Mapping[str, tuple[str, str]] = {
    GpuState.TRAIN_WITHIN_QUOTA: ("T", "train"),
    GpuState.TRAIN_OVER_QUOTA: ("O", "over"),
    GpuState.BUILD_HELD: ("B", "bench"),
    GpuState.BUILD_FREE: ("K", "kept"),
    GpuState.FREE: ("F", "free"),
    GpuState.FOREIGN: ("X", "foreign"),
    GpuState.BROKEN: ("!", "broken"),
    GpuState.CLOSED: ("C", "closed"),
}

GPU_WORDS: Mapping[GpuState, StateWord] = {
    GpuState(state): StateWord(word, *_SIGNS[state]) for state, word in phrases.GPU_STATES.items()
}
"""Display of each GPU state, in the order of the legend."""

IDLE = StateWord("bench, idle", "I", "idle")
"""Display of a bench without activity in the Hub for over an hour."""

WAITING_STATES = frozenset({State.QUEUED})
ACTIVE_STATES = frozenset({State.STARTING, State.RUNNING, State.PAUSING})
ENDED_STATES = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})


def moment(at: datetime, now: datetime) -> Moment:
    """Return ``at`` for a ``time`` element; exact in UTC until a script sets the zone."""
    utc = at.astimezone(UTC)
    return Moment(
        iso=utc.isoformat(timespec="seconds").replace("+00:00", "Z"),
        exact=f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        relative=phrases.ago((now - at).total_seconds()),
    )


def optional_moment(at: datetime | None, now: datetime) -> Moment | None:
    """Return ``moment`` of a time, or None for None."""
    return None if at is None else moment(at, now)


_INSTANT = re.compile(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC)")


def instants(text: str) -> Iterator[str | Moment]:
    """Yield the parts of a sentence: text, and the instants in it.

    >>> [it if isinstance(it, str) else it.iso for it in instants("until 2026-11-28 08:00 UTC.")]
    ['until ', '2026-11-28T08:00:00Z', '.']
    """
    for number, part in enumerate(_INSTANT.split(text)):
        at = _instant(part) if number % 2 else None
        if at is not None:
            yield Moment(f"{at:%Y-%m-%dT%H:%M:%S}Z", part, part)
        elif part:
            yield part


def _instant(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
    except ValueError:  # matches the pattern, but is no valid time
        return None
