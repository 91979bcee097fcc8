"""What is known of attempts and their workers: plain data and the questions asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime import Launch, Notice, WorkerId
from benchpool_scheduler.runtime.kubernetes.manifests import placement
from benchpool_scheduler.runtime.kubernetes.seen import PodSeen
from benchpool_scheduler.runtime.kubernetes.verdicts import Trouble


@dataclass(slots=True)
class Seat:
    """One worker and its pod.

    Attributes:
        node, slots: Where the core put it.
        launch: What it is started with; None when an earlier service started it.
        pod: As last seen; ``gone`` when it is no longer there.
        expected: Somebody wants to hear of it.
        opened: Its gate was opened by us.
        asked: What it was told. ``kill_at``: when its pod is deleted if it is still there.
        trouble: Why it does not begin, ``since`` when (monotonic seconds).
        given_back: Why we gave up waiting for it.
    """

    worker: WorkerId
    node: str
    slots: tuple[str, ...]
    launch: Launch | None = None
    pod: PodSeen | None = None
    gone: bool = False
    expected: bool = True
    opened: bool = False
    told_started: bool = False
    over: bool = False
    asked: Notice | None = None
    kill_at: float | None = None
    kill_grace_s: int = 1
    trouble: Trouble | None = None
    since: float = 0.0
    given_back: Trouble | None = None

    @property
    def gated(self) -> bool:
        """Whether its pod stands behind our gate."""
        return self.pod is not None and names.ADMISSION_GATE in self.pod.gates

    @property
    def placement(self) -> str:
        """Where it goes, as it stands in the Job."""
        return placement(self.node, self.slots)


@dataclass(slots=True)
class Attempt:
    """One start of a job: an Indexed Job and its pods.

    Attributes:
        begun: Something of it may be there. ``uid``: of the Job; empty before all of it is there.
        size: Workers that the Job has.
        wanted: Workers that it shall have.
        since: When it was begun, ``over_since`` when its last worker ended (monotonic seconds).
        looked: When we last looked why pods are missing.
    """

    job: str
    number: int
    since: float
    seats: dict[int, Seat] = field(default_factory=dict)
    begun: bool = False
    uid: str = ""
    size: int = 0
    wanted: int = 0
    over_since: float | None = None
    looked: float = 0.0

    @property
    def name(self) -> str:
        """The name of its Job, Secret and Service."""
        return names.attempt_name(self.job, self.number)

    @property
    def live(self) -> Iterator[Seat]:
        """The workers that have not ended."""
        return (seat for seat in self.seats.values() if not seat.over)

    @property
    def over(self) -> bool:
        """Whether all its workers have ended."""
        return all(seat.over for seat in self.seats.values())

    @property
    def whole(self) -> bool:
        """Whether all workers that it shall have were launched."""
        return all(index in self.seats for index in range(self.wanted))

    @property
    def placements(self) -> list[str]:
        """Where its workers go, by index."""
        return [self.seats[index].placement for index in range(self.wanted)]

    def to_open(self) -> list[Seat]:
        """Return the workers whose gates open now: all that wait, or none (R10).

        None before every worker has its pod: a gang that is not whole holds no GPU. None either
        when one of those that wait is to stop: then the others will be told as well.
        """
        waiting = [seat for seat in self.live if not seat.opened and not _begun(seat)]
        ready = all(seat.gated and seat.asked is None for seat in waiting)
        return waiting if ready and self.size >= self.wanted else []

    def missing(self) -> list[Seat]:
        """Return the workers whose pods should be there and are not."""
        return [seat for seat in self.live if seat.pod is None]


def _begun(seat: Seat) -> bool:
    return seat.pod is not None and not seat.gated


Key = tuple[str, int]
"""Job and number of an attempt."""


class Book:
    """All attempts that somebody wants to hear of, and some that just ended."""

    def __init__(self) -> None:
        self.attempts: dict[Key, Attempt] = {}

    def attempt(self, job: str, number: int, now: float) -> Attempt:
        """Return an attempt, which begins now if it is new."""
        key = (job, number)
        found = self.attempts.get(key)
        if found is None:
            found = self.attempts[key] = Attempt(job, number, now)
        return found

    def seat(self, worker: WorkerId) -> Seat | None:
        """Return a worker, None for one nobody knows."""
        attempt = self.attempts.get((worker.job, worker.attempt))
        return None if attempt is None else attempt.seats.get(worker.worker)

    def live(self, job: str) -> bool:
        """Tell whether a job has workers that have not ended."""
        return any(a.job == job and not a.over for a in self.attempts.values())

    def chosen(self) -> Iterator[str]:
        """Yield the slots of all workers that have not ended."""
        for attempt in self.attempts.values():
            for seat in attempt.live:
                yield from seat.slots
