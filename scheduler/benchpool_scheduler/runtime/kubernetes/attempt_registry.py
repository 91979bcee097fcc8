"""What is known of attempts and their workers: plain data and the questions asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime import Launch, Notice, WorkerId
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.manifests import placement
from benchpool_scheduler.runtime.kubernetes.pod_status import Trouble


@dataclass(slots=True)
class WorkerState:
    """One worker and its pod.

    Attributes:
        node, slots: Where the core put it.
        launch: What it is started with; None when an earlier service started it.
        pod: As last seen; ``gone`` when it is no longer there.
        expected: Somebody wants to hear of it.
        opened: Its gate was opened by us; ``opening``: that is under way.
        asked: What it was told. ``kill_at``: when its pod is deleted if it is still there.
        trouble: Why it does not begin, ``since`` when (monotonic seconds).
        given_back: Why we gave up waiting for it.
    """

    worker: WorkerId
    node: str
    slots: tuple[str, ...]
    launch: Launch | None = None
    pod: PodView | None = None
    gone: bool = False
    expected: bool = True
    opened: bool = False
    opening: bool = False
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
class AttemptState:
    """One start of a job: an Indexed Job and its pods.

    Attributes:
        begun: Something of it may be there. ``uid``: of the Job; empty before all of it is there.
        size: Workers that the Job has.
        wanted: Workers that it shall have.
        since: When it was begun, ``over_since`` when its last worker ended (monotonic seconds).
        looked: When we last looked why pods are missing.
        in_doubt: An earlier service has begun it, and it is not known whether all of it was made:
            until then no gate is opened.
        admitted: Its pods are those of others: nothing is made for it.
    """

    job: str
    number: int
    since: float
    workers: dict[int, WorkerState] = field(default_factory=dict)
    begun: bool = False
    uid: str = ""
    size: int = 0
    wanted: int = 0
    over_since: float | None = None
    looked: float = 0.0
    in_doubt: bool = False
    admitted: bool = False

    @property
    def name(self) -> str:
        """The name of its Job, Secret and Service."""
        return names.attempt_name(self.job, self.number)

    @property
    def live(self) -> Iterator[WorkerState]:
        """The workers that have not ended."""
        return (state for state in self.workers.values() if not state.over)

    @property
    def over(self) -> bool:
        """Whether all its workers have ended."""
        return all(state.over for state in self.workers.values())

    @property
    def whole(self) -> bool:
        """Whether all workers that it shall have were launched."""
        return all(index in self.workers for index in range(self.wanted))

    @property
    def placements(self) -> list[str]:
        """Where its workers go, by index."""
        return [self.workers[index].placement for index in range(self.wanted)]

    def to_open(self) -> list[WorkerState]:
        """Return the workers whose gates open now: all that wait, or none (R10).

        None before every worker has its pod: a gang that is not whole holds no GPU. None either
        when one of those that wait is to stop: then the others will be told as well.
        """
        waiting = [state for state in self.unbegun if not state.opened]
        ready = all(state.gated and state.asked is None for state in waiting)
        return waiting if ready and self.size >= self.wanted else []

    @property
    def unbegun(self) -> list[WorkerState]:
        """The workers whose pods are behind their gates, or still to come."""
        return [state for state in self.live if state.pod is None or state.gated]

    def missing(self) -> list[WorkerState]:
        """Return the workers whose pods should be there and are not."""
        return [state for state in self.live if state.pod is None]


Key = tuple[str, int]
"""Job and number of an attempt."""


class AttemptRegistry:
    """All attempts that somebody wants to hear of, and some that just ended."""

    def __init__(self) -> None:
        self.attempts: dict[Key, AttemptState] = {}

    def attempt(self, job: str, number: int, now: float) -> AttemptState:
        """Return an attempt, which begins now if it is new."""
        key = (job, number)
        found = self.attempts.get(key)
        if found is None:
            found = self.attempts[key] = AttemptState(job, number, now)
        return found

    def state(self, worker: WorkerId) -> WorkerState | None:
        """Return a worker, None for one nobody knows."""
        attempt = self.attempts.get((worker.job, worker.attempt))
        return None if attempt is None else attempt.workers.get(worker.worker)

    def ended(self, worker: WorkerId) -> bool:
        """Tell whether a worker is over; one that nobody knows is."""
        state = self.state(worker)
        return state is None or state.over

    def host_of(self, worker: WorkerId) -> str | None:
        """Return the address of a worker's pod while its command runs."""
        state = self.state(worker)
        if state is None or state.over or state.gone or state.pod is None:
            return None
        return (state.pod.address or None) if state.pod.running else None

    def live(self, job: str) -> bool:
        """Tell whether a job has workers that have not ended."""
        return any(a.job == job and not a.over for a in self.attempts.values())

    def chosen(self) -> Iterator[str]:
        """Yield the slots of all workers that have not ended."""
        for attempt in self.attempts.values():
            for state in attempt.live:
                yield from state.slots
