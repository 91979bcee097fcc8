"""Job states as Kubernetes events of the job object, one event per state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from benchpool_cluster.access import Access
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.kube import Connection, KubeForbidden
from benchpool_scheduler.kube.failures import KubeStatus
from benchpool_scheduler.kube.kinds import EVENTS
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.store.kubernetes import KubernetesStore
from benchpool_scheduler.store.kubernetes.encoding import StoredJob
from benchpool_scheduler.store.kubernetes.job_events import MOST, WORDS, JobEvents, message_of
from benchpool_scheduler.store.records import (
    AddJob,
    AttemptRecord,
    JobRecord,
    Note,
    SaveAttempt,
    SaveJob,
    WorkerRecord,
)
from benchpool_support.waiting import until_async

JOB = JobRecord(
    id="01hzxk8qj9v4e2c5t7m3n6p8ra",
    name="train",
    project="vision",
    user="susan",
    state=JobState.QUEUED,
    submitted=1_700_000_000.0,
    queued_since=1_700_000_000.0,
)
FAILED = Note("exit-code", "Its command ended with exit code 3.", "Read its log.")
ATTEMPT = AttemptRecord(
    JOB.id, 1, 1_700_000_001.0, (WorkerRecord(0, "node-a", ("node-a/0",)),), port=29500
)


class Recorded:
    """Connection that records created objects, or rejects them."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.refuses = refuses
        self.some = asyncio.Event()

    async def create(self, kind: Any, body: dict[str, Any], *, namespace: str) -> None:
        self.bodies.append(body)
        self.some.set()
        if self.refuses:
            raise KubeForbidden(KubeStatus(403, "Forbidden", "events is forbidden"))


def test_every_job_state_has_event_reason() -> None:
    assert set(WORDS) == set(JobState)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (StoredJob(JOB), "In project vision."),
        (StoredJob(replace(JOB, state=JobState.RUNNING), (ATTEMPT,)), "Attempt 1 on node-a."),
        (StoredJob(replace(JOB, state=JobState.FAILED, note=FAILED)), FAILED.text),
    ],
)
def test_event_text_matches_job_status(stored: StoredJob, message: str) -> None:
    assert message_of(stored) == message


async def test_event_queue_is_bounded_and_keeps_newest() -> None:
    recorded = Recorded()
    events = JobEvents(recorded, "work")  # type: ignore[arg-type]
    for number in range(MOST + 5):
        events.refused(f"job-{number}", "uid", FAILED)
    posting = asyncio.create_task(events.post())
    await recorded.some.wait()
    posting.cancel()
    assert recorded.bodies[0]["involvedObject"]["name"] == "job-5"


async def test_rejected_event_is_dropped_and_next_is_posted() -> None:
    recorded = Recorded(refuses=True)
    events = JobEvents(recorded, "work")  # type: ignore[arg-type]
    for name in ("one", "x" * 253):
        events.refused(name, "uid", FAILED)
    posting = asyncio.create_task(events.post())
    while len(recorded.bodies) < 2:
        recorded.some.clear()
        await recorded.some.wait()
    posting.cancel()
    assert len(recorded.bodies[1]["metadata"]["name"]) <= 253


# ------------------------------------------------------------------ on an API server


async def events_of(connection: Connection, namespace: str, name: str) -> dict[str, str]:
    """Return the events of a job: type and message by reason."""
    fields = f"involvedObject.kind={TRAINING_JOBS.kind.kind},involvedObject.name={name}"
    listing: Any = await connection.list(EVENTS, namespace=namespace, fields=fields)
    return {it["reason"]: f"{it['type']}: {it['message']}" for it in listing.items}


async def wait_for(connection: Connection, namespace: str, name: str, *wanted: str) -> Any:
    """Wait until a job has events with these reasons, and return all of its events."""
    return await until_async(
        lambda: events_of(connection, namespace, name),
        f"events {wanted} of {name}",
        holds=lambda found: set(wanted) <= set(found),
    )


@pytest.mark.kubernetes
async def test_state_is_posted_once_across_leaders(
    make_store: Callable[..., KubernetesStore], connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    sent = msgspec.json.encode(JobSubmission(entry=CommandEntry(["true"]), name="train"))
    await store.commit(AddJob(JOB, sent))
    await wait_for(connection, namespace, JOB.id, "Queued")
    running = replace(JOB, state=JobState.STARTING, attempt=1)
    await store.commit(SaveJob(running), SaveAttempt(ATTEMPT))
    await wait_for(connection, namespace, JOB.id, "Queued", "Starting")
    await store.close()
    successor = make_store(epoch=1)
    await successor.open()
    ended = replace(ATTEMPT, ended=1_700_000_009.0, workers=())
    failed = replace(running, state=JobState.FAILED, note=FAILED, ended=1_700_000_009.0)
    await successor.commit(SaveJob(failed), SaveAttempt(ended))
    found = await wait_for(connection, namespace, JOB.id, "Failed")
    assert found == {
        "Queued": "Normal: In project vision.",
        "Starting": "Normal: Attempt 1 on node-a.",
        "Failed": f"Warning: {FAILED.text}",
    }
    fields = f"involvedObject.name={JOB.id}"
    listing: Any = await connection.list(EVENTS, namespace=namespace, fields=fields)
    assert len(listing.items) == 3


@pytest.mark.kubernetes
async def test_refusal_is_posted_and_shown_in_kubectl_columns(
    make_store: Callable[..., KubernetesStore],
    connection: Connection,
    namespace: str,
    defined: Access,
) -> None:
    kind = TRAINING_JOBS.kind
    store = make_store()
    await store.open()
    about = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "nobodys"}}
    spec = {"command": ["true"], "name": "my training"}
    await connection.create(kind, about | {"spec": spec}, namespace=namespace)
    hearing = asyncio.ensure_future(anext(store.written()))
    found = await wait_for(connection, namespace, "nobodys", "Refused")
    hearing.cancel()
    assert found["Refused"].startswith("Warning: spec.user is missing")
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    with defined.client() as client:
        table = client.get(kind.path(namespace), headers=accept).json()
    (row,) = table["rows"]
    shown = {
        column["name"]: cell
        for column, cell in zip(table["columnDefinitions"], row["cells"], strict=True)
        if not column["priority"]
    }
    wanted = {"Name": "nobodys", "Job": "my training", "State": "refused", "Reason": "no-user"}
    assert shown.items() >= wanted.items()
    assert "User" in shown
