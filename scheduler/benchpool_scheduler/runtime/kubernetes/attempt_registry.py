"""State of attempts and their workers: plain data and queries."""

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
        node, slots: Its placement, as the core chose it.
        launch: What it is started with; None if an earlier service started it.
        pod: Its pod as last seen; ``gone`` if the pod does not exist any more.
        expected: Its events are reported.
        opened: The runtime has opened its gate; ``opening``: that is in progress.
        asked: Notice that was sent. ``kill_at``: time at which a remaining pod is deleted.
        trouble: Why it does not begin, ``since`` when (monotonic seconds).
        given_back: Why the runtime stopped waiting for it.
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
    start_reported: bool = False
    over: bool = False
    asked: Notice | None = None
    kill_at: float | None = None
    kill_grace_s: int = 1
    trouble: Trouble | None = None
    since: float = 0.0
    given_back: Trouble | None = None

    @property
    def gated(self) -> bool:
        """Whether the scheduling gate of its pod is closed."""
        return self.pod is not None and names.ADMISSION_GATE in self.pod.gates

    @property
    def placement(self) -> str:
        """Its node and slots, as written in the Job."""
        return placement(self.node, self.slots)


@dataclass(slots=True)
class AttemptState:
    """One start of a job: an Indexed Job and its pods.

    Attributes:
        begun: Objects of it may exist. ``uid``: of the Job; empty until all objects exist.
        size: Number of workers of the Job.
        wanted: Number of workers that the Job is to have.
        since: Start of the attempt, ``over_since`` end of its last worker (monotonic seconds).
        looked: Last check for the cause of missing pods.
        in_doubt: An earlier service created it, and some of its objects may be missing. Gates
            stay closed until that is known.
        admitted: Its pods were created outside benchpool; the runtime creates no objects for it.
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
        """Name of its Job, Secret and Service."""
        return names.attempt_name(self.job, self.number)

    @property
    def live(self) -> Iterator[WorkerState]:
        """Workers that have not ended."""
        return (state for state in self.workers.values() if not state.over)

    @property
    def over(self) -> bool:
        """Whether all its workers have ended."""
        return all(state.over for state in self.workers.values())

    @property
    def whole(self) -> bool:
        """Whether all wanted workers were launched."""
        return all(index in self.workers for index in range(self.wanted))

    @property
    def placements(self) -> list[str]:
        """Placements of its workers, by index."""
        return [self.workers[index].placement for index in range(self.wanted)]

    def to_open(self) -> list[WorkerState]:
        """Return the workers whose gates open now: all waiting workers, or none (R10).

        None before every worker has its pod, since an incomplete gang must not hold GPUs. Also none
        if a waiting worker is to stop, because the other workers will get a notice as well.
        """
        waiting = [state for state in self.unbegun if not state.opened]
        ready = all(state.gated and state.asked is None for state in waiting)
        return waiting if ready and self.size >= self.wanted else []

    @property
    def unbegun(self) -> list[WorkerState]:
        """Workers without a pod or with a closed gate."""
        return [state for state in self.live if state.pod is None or state.gated]

    def missing(self) -> list[WorkerState]:
        """Return the workers whose pods should exist and do not."""
        return [state for state in self.live if state.pod is None]


Key = tuple[str, int]
"""Job and number of an attempt."""


class AttemptRegistry:
    """All attempts whose events are reported, and some that ended recently."""

    def __init__(self) -> None:
        self.attempts: dict[Key, AttemptState] = {}

    def attempt(self, job: str, number: int, now: float) -> AttemptState:
        """Return an attempt; create it if it is new."""
        key = (job, number)
        found = self.attempts.get(key)
        if found is None:
            found = self.attempts[key] = AttemptState(job, number, now)
        return found

    def state(self, worker: WorkerId) -> WorkerState | None:
        """Return a worker, or None if it is unknown."""
        attempt = self.attempts.get((worker.job, worker.attempt))
        return None if attempt is None else attempt.workers.get(worker.worker)

    def ended(self, worker: WorkerId) -> bool:
        """Return whether a worker has ended; an unknown worker counts as ended."""
        state = self.state(worker)
        return state is None or state.over

    def host_of(self, worker: WorkerId) -> str | None:
        """Return the address of a worker's pod while its command runs."""
        state = self.state(worker)
        if state is None or state.over or state.gone or state.pod is None:
            return None
        return (state.pod.address or None) if state.pod.running else None

    def live(self, job: str) -> bool:
        """Return whether a job has workers that have not ended."""
        return any(a.job == job and not a.over for a in self.attempts.values())

    def chosen(self) -> Iterator[str]:
        """Yield the slots of all workers that have not ended."""
        for attempt in self.attempts.values():
            for state in attempt.live:
                yield from state.slots
