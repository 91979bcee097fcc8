"""State of idle benches that survives a restart of the scheduler, in a file of its own.

The time without a running scheduler does not count as idle. A bench starts again from zero if that
time was longer than the rule's tolerance for unknown time, or if a clock was set meanwhile. If the
file is lost or unreadable, all benches start again from zero, so none is released early.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec
from msgspec import Struct

from benchpool_scheduler.core.benches.idle import RESTING, IdleLadder, IdleStep, IdleWatch
from benchpool_scheduler.store import whole_files


class KeptWatch(Struct, frozen=True):
    """Stored idle state of one bench."""

    step: IdleStep
    idle_s: float
    known_s: float
    executions: int | None = None
    keeps: tuple[float, ...] = ()
    kept_until: float = 0.0


class KeptIdle(Struct, frozen=True):
    """Stored idle state of all benches at the time ``at``; ``rule`` is the rule then in force.

    Attributes:
        given_up: Leases that ended while their server keeps running. The Hub still names them.
    """

    at: float = 0.0
    rule: str = ""
    benches: dict[str, KeptWatch] = {}
    given_up: tuple[str, ...] = ()


def load(file: Path) -> KeptIdle:
    """Return the stored state, or an empty one if the file is missing or unreadable."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=KeptIdle)
    except (OSError, msgspec.DecodeError):
        return KeptIdle()


def save(file: Path, kept: KeptIdle) -> None:
    """Write the state to the file. Errors: OSError."""
    whole_files.write(file, msgspec.json.encode(kept))


def watch_after(kept: KeptWatch, away_s: float, now: float, ladder: IdleLadder) -> IdleWatch:
    """Return the state of a bench after a gap of ``away_s`` seconds without observation.

    >>> before = KeptWatch(IdleStep.DUE, idle_s=3600.0, known_s=3600.0)
    >>> watch_after(before, 60.0, 10_000.0, IdleLadder())
    IdleWatch(step=<IdleStep.ASKED: 'asked'>, at=10000.0, since=6400.0, known_s=3600.0)
    >>> watch_after(before, 600.0, 10_000.0, IdleLadder()).step
    <IdleStep.USED: 'used'>
    """
    longest_s = (1.0 - ladder.coverage) * ladder.act_s
    if kept.step not in RESTING or not 0 <= away_s <= longest_s:
        return IdleWatch()
    step = IdleStep.ASKED if kept.step is IdleStep.DUE else kept.step
    return IdleWatch(step, at=now, since=now - kept.idle_s, known_s=kept.known_s)


def still_named(given_up: Collection[str], held: Collection[str]) -> tuple[str, ...]:
    """Return the leases that the Hub still names. The rest can be forgotten."""
    return tuple(it for it in given_up if it in held)
