"""Kubernetes events of jobs, for ``kubectl describe`` and ``kubectl events``.

An event repeats the sentence of the status when it changes. Nothing depends on events: those that
cannot be posted are dropped. They are posted one at a time, and each pause is as long as the post
took.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

from benchpool_scheduler.contract.kubernetes import API_VERSION
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.kube import Connection, KubeFailure
from benchpool_scheduler.kube.kinds import EVENTS
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.store.kubernetes.encoding import StoredJob
from benchpool_scheduler.store.records import Note

log = logging.getLogger(__name__)

COMPONENT = "benchpool-scheduler"
MOST = 1000
"""Maximum number of queued events; beyond it the oldest are dropped."""
MOST_TEXT = 1000
MOST_NAME = 200


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Event of a job.

    Attributes:
        reason: A word such as ``Running``. ``at``: seconds since the epoch.
    """

    name: str
    uid: str
    reason: str
    text: str
    at: float
    kind: Literal["Normal", "Warning"] = "Normal"

    def manifest(self, namespace: str, suffix: str) -> dict[str, Any]:
        """Return the event as an API object; ``suffix`` makes its name unique."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.at))
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{self.name[:MOST_NAME].rstrip('.-')}.{suffix}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": TRAINING_JOBS.kind.kind,
                "name": self.name,
                "namespace": namespace,
                "uid": self.uid,
            },
            "reason": self.reason,
            "message": self.text[:MOST_TEXT],
            "type": self.kind,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
        }


WORDS: dict[JobState, str] = {
    JobState.QUEUED: "Queued",
    JobState.STARTING: "Starting",
    JobState.RUNNING: "Running",
    JobState.PAUSING: "Pausing",
    JobState.PAUSED: "Paused",
    JobState.SUCCEEDED: "Succeeded",
    JobState.FAILED: "Failed",
    JobState.CANCELLED: "Cancelled",
}


def message_of(stored: StoredJob) -> str:
    """Return the sentence of an event about the current state of a job."""
    job, newest = stored.job, stored.newest
    if job.state in (JobState.STARTING, JobState.RUNNING) and newest is not None:
        nodes = ", ".join(dict.fromkeys(it.node for it in newest.live_workers))
        return f"Attempt {newest.attempt} on {nodes}." if nodes else f"Attempt {newest.attempt}."
    if job.state is JobState.PAUSING and job.stop_request is not None and job.stop_request.text:
        return job.stop_request.text
    if job.note is not None:
        return job.note.text
    return f"In project {job.project}."


class JobEvents:
    """Queue of job events that are posted in the background."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._waiting: deque[JobEvent] = deque(maxlen=MOST)
        self._some = asyncio.Event()

    def changed(self, name: str, uid: str, stored: StoredJob) -> None:
        """Queue an event about a job's new state."""
        state = stored.job.state
        kind: Literal["Normal", "Warning"] = "Warning" if state is JobState.FAILED else "Normal"
        self._add(JobEvent(name, uid, WORDS[state], message_of(stored), time.time(), kind))

    def refused(self, name: str, uid: str, note: Note) -> None:
        """Queue an event about a job that was not accepted."""
        text = f"{note.text} {note.remedy}".strip()
        self._add(JobEvent(name, uid, "Refused", text, time.time(), "Warning"))

    def _add(self, event: JobEvent) -> None:
        self._waiting.append(event)
        self._some.set()

    async def post(self) -> None:
        """Post queued events forever. Errors: NotLeading."""
        while True:
            await self._some.wait()
            if not self._waiting:
                self._some.clear()
                continue
            begun = time.monotonic()
            body = self._waiting.popleft().manifest(self._namespace, secrets.token_hex(8))
            try:
                await self._connection.create(EVENTS, body, namespace=self._namespace)
            except (KubeFailure, Unavailable) as failed:
                log.warning("event of a job not posted: %s", failed)
            await asyncio.sleep(time.monotonic() - begun)
