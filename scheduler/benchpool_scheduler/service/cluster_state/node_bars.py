"""Which places a job keeps off for a while because they did not take it: pure.

A refusal may be of a moment, as while a device plugin starts again: the first keeps the job off for
seconds, each that follows for longer. Once the job has begun somewhere, all is forgotten.
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
"""Room in a namespace comes free at any time: a job tries again at least so often."""


@dataclass(frozen=True, slots=True)
class RoomBar:
    """A while in which a job is not started, because the cluster had no room for its pods.

    Attributes:
        text: What was said. ``times``: how often, one time after the other.
        since: When that attempt ended, in seconds since the epoch.
    """

    text: str | None
    times: int
    since: float

    @property
    def length_s(self) -> float:
        """For how long the job waits."""
        return min(LONGEST_FOR_ROOM_S, length_s(self.times))

    @property
    def until(self) -> float:
        """When it may be tried again, in seconds since the epoch."""
        return self.since + self.length_s


def room_bar(attempts: Sequence[AttemptRecord]) -> RoomBar | None:
    """Return until when a job waits for room in its namespace; None when the last try was let in.

    Args:
        attempts: Of one job, oldest first.
    """
    full = list(takewhile(lambda one: one.ended_by == EndedBy.NO_ROOM, reversed(attempts)))
    if not full:
        return None
    said = next((w.text for w in full[0].workers if w.ended_by == EndedBy.NO_ROOM), None)
    return RoomBar(said, len(full), full[0].ended or 0.0)


@dataclass(frozen=True, slots=True)
class NodeBar:
    """A place that a job may not use for now.

    Attributes:
        place: A node, or its slices of one kind. ``node``: where it is.
        attempt: The one that it did not take last. ``text``: what was said.
        times: How often it has not taken the job, one time after the other.
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
        """For how long the job keeps off."""
        return length_s(self.times)

    @property
    def until(self) -> float:
        """When it may be tried again, in seconds since the epoch."""
        return self.since + self.length_s


def length_s(times: int) -> float:
    """Return for how long a job keeps off a place that has not taken it so many times.

    >>> [length_s(times) for times in range(1, 7)]
    [5.0, 20.0, 80.0, 320.0, 600.0, 600.0]
    """
    return float(min(LONGEST_S, FIRST_S * LONGER ** min(times - 1, 10)))


def node_bars(attempts: Iterable[AttemptRecord]) -> tuple[NodeBar, ...]:
    """Return the places that did not take a job, also those that it may try again by now.

    Args:
        attempts: Of one job, oldest first.
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
