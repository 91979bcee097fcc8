"""Due times of a schedule: the time to send, and the times that were missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.schedules.cron_times import times_before

MOST_KEPT = 10
"""Maximum number of past times kept per schedule."""


@dataclass(frozen=True, slots=True)
class DueTimes:
    """Times that have come since the last check of a schedule.

    Attributes:
        now: The newest of them, which is to be sent; None if no time has come.
        missed: The earlier ones, newest first; they came while no check ran.
    """

    now: float | None
    missed: Sequence[float] = ()


def due(cron: str, zone: str, seen: float, now: float) -> DueTimes:
    """Return the due times.

    After any number of missed times, only the newest is made up for, once.

    Args:
        seen: All times up to this one are decided.

    >>> due("0 * * * *", "UTC", seen=0.0, now=2 * 3600 + 60.0)
    DueTimes(now=7200.0, missed=(3600.0,))
    >>> due("0 * * * *", "UTC", seen=7200.0, now=7260.0)
    DueTimes(now=None, missed=())
    """
    come = times_before(cron, zone, now, MOST_KEPT, after=seen)
    return DueTimes(come[0], tuple(come[1:])) if come else DueTimes(None)
