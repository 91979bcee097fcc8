"""Finds attempts again after a start, and why pods are missing, from the API server alone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import Struct

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import Connection, NotFound, kinds
from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_scheduler.runtime.kubernetes.book import Attempt, Book, Seat
from benchpool_scheduler.runtime.kubernetes.manifests import PLACEMENT, placements
from benchpool_scheduler.runtime.kubernetes.seen import Condition, Meta, PodSeen
from benchpool_scheduler.runtime.kubernetes.settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.verdicts import TEXT_LIMIT, Trouble, seconds

PATIENCE_S = 60.0
"""Pods that are missing for so long, without anybody saying why, will not come."""
IDLE_PATIENCE_S = 600.0
"""A Job controller that has thousands of Jobs to begin may take so long to come to one."""


class JobStatus(Struct, frozen=True, rename="camel"):
    """``status`` of a Job; ``startTime`` is set when the Job controller first looks at it."""

    conditions: list[Condition] = []
    start_time: str | None = None
    completed_indexes: str = ""


class Job(Struct, frozen=True):
    """A Job as the API server sends it."""

    metadata: Meta
    status: JobStatus = JobStatus()

    @property
    def over(self) -> bool:
        """Whether it will make no more pods."""
        return any(
            one.type in ("Complete", "Failed") and one.status == "True"
            for one in self.status.conditions
        )


class Event(Struct, frozen=True):
    """An event as the API server sends it."""

    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a start has found.

    Attributes:
        finished: Expected workers that have succeeded, as their Jobs remember; their pods are gone.
        lost: Expected workers of which nothing is there.
        unexpected: Names of Jobs that nobody expects: they run on, or their end was heard of.
    """

    finished: tuple[WorkerId, ...]
    lost: tuple[WorkerId, ...]
    unexpected: tuple[str, ...]


async def find(
    connection: Connection,
    settings: ClusterSettings,
    book: Book,
    expected: Iterable[WorkerId],
    pods: Iterable[PodSeen],
) -> Found:
    """Put what is expected and there into the book. Errors: KubeFailure, KubeUnavailable.

    A worker whose Job was deleted is not lost before its pod is gone.
    """
    left = {WorkerId(pod.job, pod.attempt, pod.index): pod for pod in pods if pod.job}
    listed = await connection.list(
        kinds.JOBS,
        namespace=settings.namespace,
        labels=f"{names.ROLE}={names.ROLE_WORKER}",
        as_=Job,
    )
    jobs = {one.metadata.name: one for one in listed.items}
    wanted = set(expected)
    now = time.monotonic()
    lost, finished = [], []
    for worker in sorted(wanted):
        job = jobs.get(names.attempt_name(worker.job, worker.attempt))
        seats = () if job is None else placements(job.metadata.annotations.get(PLACEMENT, ""))
        if job is None or worker.worker >= len(seats):
            pod = left.get(worker)
            if pod is None or pod.over:
                lost.append(worker)
            else:
                attempt = book.attempt(worker.job, worker.attempt, now)
                attempt.uid = "deleted"
                attempt.seats[worker.worker] = Seat(worker, pod.node, pod.slots)
            continue
        attempt = book.attempt(worker.job, worker.attempt, now)
        attempt.uid = job.metadata.uid
        attempt.size = attempt.wanted = len(seats)
        for index, (node, slots) in enumerate(seats):
            if index not in attempt.seats:
                one = WorkerId(worker.job, worker.attempt, index)
                attempt.seats[index] = Seat(one, node, slots, over=one not in wanted)
        if worker not in left and worker.worker in indexes(job.status.completed_indexes):
            # Its pod was deleted while nobody was there to see that it ended well.
            attempt.seats[worker.worker].over = True
            finished.append(worker)
    for worker in lost:
        joining = book.attempts.get((worker.job, worker.attempt))
        if joining is not None:
            # Its Job runs without it. Its number stays taken, so that others may join after it.
            joining.seats[worker.worker] = Seat(worker, "", (), over=True)
    known = {attempt.name for attempt in book.attempts.values()}
    unexpected = tuple(name for name in jobs if name not in known)
    return Found(tuple(finished), tuple(lost), unexpected)


def indexes(text: str) -> frozenset[int]:
    """Return the numbers that a Job's status says in short.

    >>> sorted(indexes("0,2-4")), sorted(indexes(""))
    ([0, 2, 3, 4], [])
    """
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


async def why_missing(
    connection: Connection, settings: ClusterSettings, attempt: Attempt, now: float
) -> Trouble | None:
    """Return why an attempt's pods are not there; None while they may still come.

    A pod that a policy or a quota refuses does not fail its Job: only events tell of it.
    Errors: KubeFailure, KubeUnavailable.
    """
    try:
        job = await connection.get(kinds.JOBS, attempt.name, namespace=settings.namespace, as_=Job)
    except NotFound:
        text = "somebody deleted its Job"
        return Trouble("job", text, 0.0, EndedBy.LOST)
    if job.over or job.metadata.deletion_timestamp:
        return Trouble("job", "its Job has ended without it", 0.0, EndedBy.LOST)
    waited = now - attempt.since
    began = seconds(job.status.start_time)
    if began is None:
        if waited < IDLE_PATIENCE_S:
            return None
        text = f"the cluster has not begun its Job within {IDLE_PATIENCE_S:g} s"
        return Trouble("missing", text, 0.0, EndedBy.LOST)
    events = await connection.list(
        kinds.EVENTS,
        namespace=settings.namespace,
        fields=f"involvedObject.uid={job.metadata.uid},reason=FailedCreate",
        as_=Event,
    )
    if events.items:
        said = events.items[-1].message
        quota = "exceeded quota" in said
        text = f"the cluster refuses its pod: {said}"[:TEXT_LIMIT]
        by = EndedBy.LOST if quota else EndedBy.COULD_NOT_START
        return Trouble("refused", text, 0.0, by)
    if min(waited, time.time() - began) > PATIENCE_S:
        text = f"the cluster has made no pod for it within {PATIENCE_S:g} s"
        return Trouble("missing", text, 0.0, EndedBy.LOST)
    return None
