"""Recovery of attempts after a start, from the API server alone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import Connection, kinds
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.kubernetes.attempt_registry import (
    AttemptRegistry,
    WorkerState,
)
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.manifests import PLACEMENT, placements
from benchpool_scheduler.runtime.kubernetes.raw_objects import RawJob


@dataclass(frozen=True, slots=True)
class Adopted:
    """Result of the recovery after a start.

    Attributes:
        finished: Expected workers that succeeded according to their Jobs; their pods are gone.
        lost: Expected workers without a Job and without a running pod.
        unexpected: Names of Jobs without an expected worker: unknown, or their end was reported.
    """

    finished: tuple[WorkerId, ...]
    lost: tuple[WorkerId, ...]
    unexpected: tuple[str, ...]


async def adopt(
    connection: Connection,
    settings: ClusterSettings,
    registry: AttemptRegistry,
    expected: Iterable[WorkerId],
    pods: Iterable[PodView],
) -> Adopted:
    """Register the expected workers that exist. Raises KubeFailure or KubeUnavailable.

    A worker whose Job was deleted is lost only after its pod is gone.
    """
    left = {WorkerId(pod.job, pod.attempt, pod.index): pod for pod in pods if pod.job}
    listed = await connection.list(
        kinds.JOBS,
        namespace=settings.namespace,
        labels=f"{names.ROLE}={names.ROLE_WORKER}",
        as_=RawJob,
    )
    jobs = {one.metadata.name: one for one in listed.items}
    wanted = set(expected)
    now = time.monotonic()
    lost, finished = [], []
    for worker in sorted(wanted):
        job = jobs.get(names.attempt_name(worker.job, worker.attempt))
        workers = () if job is None else placements(job.metadata.annotations.get(PLACEMENT, ""))
        if job is None or worker.worker >= len(workers):
            pod = left.get(worker)
            if pod is None or (pod.over and not pod.foreign):
                lost.append(worker)
            else:
                attempt = registry.attempt(worker.job, worker.attempt, now)
                attempt.uid, attempt.in_doubt = "deleted", True
                attempt.admitted = pod.foreign
                attempt.workers[worker.worker] = WorkerState(worker, pod.node, pod.slots)
            continue
        attempt = registry.attempt(worker.job, worker.attempt, now)
        attempt.uid, attempt.in_doubt = job.metadata.uid, True
        attempt.size = attempt.wanted = len(workers)
        for index, (node, slots) in enumerate(workers):
            if index not in attempt.workers:
                one = WorkerId(worker.job, worker.attempt, index)
                attempt.workers[index] = WorkerState(one, node, slots, over=one not in wanted)
        if worker not in left and worker.worker in indexes(job.status.completed_indexes):
            # Its pod was deleted while the service was down, after it had succeeded.
            attempt.workers[worker.worker].over = True
            finished.append(worker)
    for worker in lost:
        joining = registry.attempts.get((worker.job, worker.attempt))
        if joining is not None:
            # Its Job runs without it. Its index stays taken, so that other workers can join after
            # it.
            joining.workers[worker.worker] = WorkerState(worker, "", (), over=True)
    known = {attempt.name for attempt in registry.attempts.values()}
    unexpected = tuple(name for name in jobs if name not in known)
    return Adopted(tuple(finished), tuple(lost), unexpected)


def indexes(text: str) -> frozenset[int]:
    """Return the indexes in the compressed form of a Job's status.

    >>> sorted(indexes("0,2-4")), sorted(indexes(""))
    ([0, 2, 3, 4], [])
    """
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
