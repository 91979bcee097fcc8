"""Places that a job avoids for a while after they refused it; pure functions.

A refusal may be temporary, as while a device plugin restarts. The first one bars the place for
seconds, each further one for longer. All bars end once the job has started somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service.observed.inventory import place_of
from benchpool_scheduler.store.records import AttemptRecord

FIRST_S = 5.0
LONGER = 4.0
LONGEST_S = 600.0


LONGEST_FOR_ROOM_S = 60.0
"""Longest bar for lack of room in a namespace, in seconds. Such room may come free at any time."""


@dataclass(frozen=True, slots=True)
class RoomBar:
    """Bar on a job's start because the cluster had no room for its pods.

    Attributes:
        text: Message of the cluster. ``times``: number of consecutive refusals.
        since: When the last attempt ended, in seconds since the epoch.
    """

    text: str | None
    times: int
    since: float

    @property
    def length_s(self) -> float:
        """Duration of the bar, in seconds."""
        return min(LONGEST_FOR_ROOM_S, length_s(self.times))

    @property
    def until(self) -> float:
        """When the bar ends, in seconds since the epoch."""
        return self.since + self.length_s


def room_bar(attempts: Sequence[AttemptRecord]) -> RoomBar | None:
    """Return the bar of a job that waits for room in its namespace, or None.

    It is None if the last attempt was admitted.

    Args:
        attempts: Attempts of one job, oldest first.
    """
    full = list(takewhile(lambda one: one.ended_by == EndedBy.NO_ROOM, reversed(attempts)))
    if not full:
        return None
    text = next((w.text for w in full[0].workers if w.ended_by == EndedBy.NO_ROOM), None)
    return RoomBar(text, len(full), full[0].ended or 0.0)


@dataclass(frozen=True, slots=True)
class NodeBar:
    """Bar on a place for one job.

    Attributes:
        place: A node, or its slices of one kind. ``node``: the node of the place.
        attempt: The last attempt that it refused. ``text``: message of the refusal.
        times: Number of consecutive attempts that it refused.
        since: When that attempt's worker ended, in seconds since the epoch.
    """

    place: str
    node: str
    attempt: int
    text: str | None
    times: int
    since: float

    @property
    def length_s(self) -> float:
        """Duration of the bar, in seconds."""
        return length_s(self.times)

    @property
    def until(self) -> float:
        """When the bar ends, in seconds since the epoch."""
        return self.since + self.length_s


def length_s(times: int) -> float:
    """Return how long a place is barred after this many refusals, in seconds.

    >>> [length_s(times) for times in range(1, 7)]
    [5.0, 20.0, 80.0, 320.0, 600.0, 600.0]
    """
    return float(min(LONGEST_S, FIRST_S * LONGER ** min(times - 1, 10)))


def node_bars(attempts: Iterable[AttemptRecord]) -> tuple[NodeBar, ...]:
    """Return the bars of the places that refused a job, including ended ones.

    Args:
        attempts: Attempts of one job, oldest first.
    """
    found: dict[str, NodeBar] = {}
    for attempt in attempts:
        refused = [
            worker
            for worker in attempt.workers
            if worker.ended_by == EndedBy.NOT_TAKEN and worker.ended is not None
        ]
        if attempt.started is not None and not refused:
            found.clear()
        for worker in refused:
            place = place_of(worker.node, worker.gpus)
            before = found.get(place)
            times = 1 if before is None else before.times + (before.attempt != attempt.attempt)
            found[place] = NodeBar(
                place, worker.node, attempt.attempt, worker.text, times, worker.ended or 0.0
            )
    return tuple(found.values())
