"""How long a service waits before it begins another replica for one that failed.

A replica has no end: whatever ended it, also exit 0, is a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from benchpool_scheduler.serving.facts import ReplicaFailure

FIRST_S, LONGEST_S = 1.0, 300.0
"""The first pause and the longest; each is twice the one before."""
SOUND_S = 600.0
"""A replica that has answered for so long makes the next pause the first again."""


def pause_s(failures: int) -> float:
    """Return the pause after so many failures in a row.

    >>> [pause_s(failures) for failures in (0, 1, 2, 3, 9, 10, 1000)]
    [0.0, 1.0, 2.0, 4.0, 256.0, 300.0, 300.0]
    """
    if failures == 0:
        return 0.0
    return float(min(FIRST_S * 2.0 ** min(failures - 1, 30), LONGEST_S))


def failures_in_a_row(failures: Sequence[ReplicaFailure], version: int, sound: bool = False) -> int:
    """Return how many failures of a version count.

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
    """Return from when on another replica may begin, epoch seconds; 0 for at once.

    >>> next_begin([ReplicaFailure(30.0, 1, 0.0), ReplicaFailure(20.0, 1, 0.0)], 1)
    32.0
    """
    number = failures_in_a_row(failures, version, sound)
    newest = next((it.at for it in failures if it.version == version), 0.0)
    return newest + pause_s(number) if number else 0.0
