"""Delay before a service begins another replica after a failure.

A replica is meant to run without an end: any end, including exit 0, is a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from benchpool_scheduler.serving.facts import ReplicaFailure

FIRST_S, LONGEST_S = 1.0, 300.0
"""Shortest and longest delay, in seconds; each is twice the one before."""
SOUND_S = 600.0
"""Time of answering after which a failure gets the shortest delay again, in seconds."""


def pause_s(failures: int) -> float:
    """Return the delay after this number of failures in a row, in seconds.

    >>> [pause_s(failures) for failures in (0, 1, 2, 3, 9, 10, 1000)]
    [0.0, 1.0, 2.0, 4.0, 256.0, 300.0, 300.0]
    """
    if failures == 0:
        return 0.0
    return float(min(FIRST_S * 2.0 ** min(failures - 1, 30), LONGEST_S))


def failures_in_a_row(failures: Sequence[ReplicaFailure], version: int, sound: bool = False) -> int:
    """Return the number of failures of a version that count.

    Args:
        failures: Newest first.
        sound: A replica of this version has answered for ``SOUND_S`` and still does.

    >>> quick = [ReplicaFailure(at, 1, 0.0) for at in (30.0, 20.0)]
    >>> failures_in_a_row(quick, 1), failures_in_a_row(quick, 2)
    (2, 0)
    >>> failures_in_a_row([*quick, ReplicaFailure(10.0, 1, 700.0), quick[0]], 1)
    3
    """
    if sound:
        return 0
    own = [it for it in failures if it.version == version]
    quick = len(list(takewhile(lambda it: it.ready_s < SOUND_S, own)))
    return min(quick + 1, len(own))


def next_begin(failures: Sequence[ReplicaFailure], version: int, sound: bool = False) -> float:
    """Return the time from which another replica may begin, in epoch seconds; 0 for immediately.

    >>> next_begin([ReplicaFailure(30.0, 1, 0.0), ReplicaFailure(20.0, 1, 0.0)], 1)
    32.0
    """
    number = failures_in_a_row(failures, version, sound)
    newest = next((it.at for it in failures if it.version == version), 0.0)
    return newest + pause_s(number) if number else 0.0
