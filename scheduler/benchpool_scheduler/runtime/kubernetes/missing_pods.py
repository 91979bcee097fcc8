"""Reasons for missing pods of an attempt, from the API server alone."""

from __future__ import annotations

import time

from benchpool_scheduler.kube import Connection, KubeNotFound, kinds
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.kubernetes.adoption import indexes
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptState
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.namespace_limits import no_room
from benchpool_scheduler.runtime.kubernetes.pod_status import TEXT_LIMIT, Trouble, seconds
from benchpool_scheduler.runtime.kubernetes.raw_objects import RawEvent, RawJob

PATIENCE_S = 60.0
"""Time after which missing pods without a known reason are given up, in seconds."""
IDLE_PATIENCE_S = 600.0
"""Time that a Job controller with thousands of new Jobs may need to begin one, in seconds."""


async def finished(
    connection: Connection, settings: ClusterSettings, attempt: AttemptState
) -> frozenset[int]:
    """Return the workers that succeeded according to their Job, even if their pods are gone.

    Raises KubeFailure or KubeUnavailable.
    """
    try:
        job = await connection.get(
            kinds.JOBS, attempt.name, namespace=settings.namespace, as_=RawJob
        )
    except KubeNotFound:
        return frozenset()
    return indexes(job.status.completed_indexes)


async def why_missing(
    connection: Connection, settings: ClusterSettings, attempt: AttemptState, now: float
) -> Trouble | None:
    """Return why an attempt's pods are missing; None while they may still appear.

    A pod that a policy or a quota rejects does not fail its Job: only events report it. Raises
    KubeFailure or KubeUnavailable.
    """
    try:
        job = await connection.get(
            kinds.JOBS, attempt.name, namespace=settings.namespace, as_=RawJob
        )
    except KubeNotFound:
        text = "its Job was deleted"
        return Trouble("job", text, 0.0, EndedBy.LOST)
    if job.over or job.metadata.deletion_timestamp:
        return Trouble("job", "its Job ended without it", 0.0, EndedBy.LOST)
    waited = now - attempt.since
    began = seconds(job.status.start_time)
    if began is None:
        if waited < IDLE_PATIENCE_S:
            return None
        text = f"the cluster did not start its Job within {IDLE_PATIENCE_S:g} s"
        return Trouble("missing", text, 0.0, EndedBy.LOST)
    events = await connection.list(
        kinds.EVENTS,
        namespace=settings.namespace,
        fields=f"involvedObject.uid={job.metadata.uid},reason=FailedCreate",
        as_=RawEvent,
    )
    if events.items:
        message = events.items[-1].message
        full = no_room(message, settings.namespace)
        if full is not None:
            return Trouble("no-room", full[:TEXT_LIMIT], 0.0, EndedBy.NO_ROOM)
        text = f"the cluster rejects its pod: {message}"[:TEXT_LIMIT]
        return Trouble("refused", text, 0.0, EndedBy.COULD_NOT_START)
    if min(waited, time.time() - began) > PATIENCE_S:
        text = f"the cluster created no pod for it within {PATIENCE_S:g} s{_blocked(job)}"
        return Trouble("missing", text, 0.0, EndedBy.LOST)
    return None


def _blocked(job: RawJob) -> str:
    """Return the Job controller's message about unusable scheduling objects (KEP-5547)."""
    messages = (
        it.message or it.reason
        for it in job.status.conditions
        if (it.type, it.status) == ("SchedulingBlocked", "True")
    )
    return next((f": {text}"[:TEXT_LIMIT] for text in messages), "")
