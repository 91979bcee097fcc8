"""Changes made with kubectl: jobs, suspend and deletions come in, refusals are written back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import JobSubmission, ScriptEntry
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.kube import Connection
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.resources.leases import BUILD_LEASES
from benchpool_scheduler.store.inbound import (
    FieldWritten,
    Inbound,
    JobGone,
    JobWritten,
    LeaseGone,
    SuspendWritten,
    Written,
)
from benchpool_scheduler.store.kubernetes import KubernetesStore
from benchpool_scheduler.store.kubernetes.identifiers import id_of
from benchpool_scheduler.store.records import (
    AddJob,
    DropLease,
    JobRecord,
    LeaseRecord,
    Note,
    SaveJob,
    SaveLease,
)
from benchpool_support.waiting import PATIENCE_S

pytestmark = pytest.mark.kubernetes
JOBS = TRAINING_JOBS.kind
LEASES = BUILD_LEASES.kind

MakeStore = Callable[..., KubernetesStore]


async def apply(connection: Connection, namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    body = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name},
        "spec": {"script": {"path": "train.py"}, "user": "susan", "project": "vision"} | spec,
    }
    made: dict[str, Any] = await connection.apply(
        JOBS, name, body, manager="susan", namespace=namespace
    )
    return made


async def following(news: AsyncIterator[Written]) -> Written:
    async with asyncio.timeout(PATIENCE_S):
        return await anext(news)


def record_of(written: JobWritten) -> JobRecord:
    submission = msgspec.json.decode(written.submission, type=JobSubmission)
    return JobRecord(
        id=written.id,
        name=submission.name or "",
        project=submission.project or "",
        user=written.user,
        state=JobState.PAUSED if written.suspended else JobState.QUEUED,
        submitted=written.since,
        queued_since=written.since,
        spec=JobSpec(gpus=submission.gpus),
    )


async def test_applied_job_is_reported_accepted_and_loaded(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    early = await apply(connection, namespace, "early", gpus=2)
    store = make_store()
    assert isinstance(store, Inbound)
    assert (await store.open()).jobs == ()
    news = store.written()
    written = await following(news)
    assert isinstance(written, JobWritten)
    assert written.id == id_of(early["metadata"]["uid"])
    assert (written.user, written.suspended) == ("susan", False)
    submission = msgspec.json.decode(written.submission, type=JobSubmission)
    assert (submission.name, submission.gpus) == ("early", 2)
    assert submission.entry == ScriptEntry("train.py")
    late = await apply(connection, namespace, "late", suspend=True)
    second = await following(news)
    assert isinstance(second, JobWritten)
    assert (second.id, second.suspended) == (id_of(late["metadata"]["uid"]), True)
    await store.commit(AddJob(record_of(written), written.submission))
    await store.commit(AddJob(record_of(second), second.submission))
    await store.close()

    found = await connection.get(JOBS, "early", namespace=namespace)
    assert (found["status"]["id"], found["status"]["state"]) == (written.id, "queued")
    again = make_store()
    contents = await again.open()
    assert [it.id for it in contents.jobs] == [written.id, second.id]
    assert [it.state for it in contents.jobs] == [JobState.QUEUED, JobState.PAUSED]


async def test_interrupted_acceptance_is_requested_again(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    store.writer.later = lambda cached, priority: None  # type: ignore[method-assign]  # dies before
    await apply(connection, namespace, "one")
    written = await following(store.written())
    assert isinstance(written, JobWritten)
    await store.commit(AddJob(record_of(written), written.submission))
    again = make_store()
    assert (await again.open()).jobs == ()
    assert await following(again.written()) == written


async def test_suspend_is_reported_once_even_after_downtime(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    await apply(connection, namespace, "one")
    written = await following(news)
    assert isinstance(written, JobWritten)
    record = record_of(written)
    await store.commit(AddJob(record, written.submission))
    await connection.patch(JOBS, "one", {"spec": {"suspend": True}}, namespace=namespace)
    assert await following(news) == SuspendWritten(written.id, True)
    await store.commit(SaveJob(replace(record, state=JobState.PAUSED)))
    await store.close()

    await connection.patch(JOBS, "one", {"spec": {"suspend": False}}, namespace=namespace)
    again = make_store()
    await again.open()
    later_news = again.written()
    assert await following(later_news) == SuspendWritten(written.id, False)
    await again.close()
    third = make_store()
    await third.open()
    await apply(connection, namespace, "marker")
    after = await following(third.written())
    assert isinstance(after, JobWritten)  # and no second SuspendWritten


async def test_deleted_job_is_reported(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    await apply(connection, namespace, "one")
    written = await following(news)
    assert isinstance(written, JobWritten)
    await store.commit(AddJob(record_of(written), written.submission))
    await connection.delete(JOBS, "one", namespace=namespace)
    assert await following(news) == JobGone(written.id)


async def test_refusal_stays_in_status_until_edit(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    await apply(connection, namespace, "one", project="no-such")
    written = await following(news)
    assert isinstance(written, JobWritten)
    await store.refuse(written.id, Note("no-such-project", "There is no project 'no-such'."))
    found = await connection.get(JOBS, "one", namespace=namespace)
    accepted = found["status"]["conditions"][0]
    assert (accepted["type"], accepted["status"]) == ("Accepted", "False")
    assert accepted["message"] == "There is no project 'no-such'."
    assert found["status"]["reason"]["code"] == "no-such-project"
    await store.close()

    again = make_store()
    await again.open()
    later_news = again.written()
    await apply(connection, namespace, "one", project="vision")
    second = await following(later_news)
    assert isinstance(second, JobWritten)
    assert second.id == written.id
    submission = msgspec.json.decode(second.submission, type=JobSubmission)
    assert submission.project == "vision"
    await again.commit(AddJob(record_of(second), second.submission))
    await again.close()
    found = await connection.get(JOBS, "one", namespace=namespace)
    assert found["status"]["state"] == "queued"


async def test_job_without_user_is_rejected_by_store(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    await connection.create(
        JOBS,
        {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": "nobody"},
            "spec": {"command": ["true"]},
        },
        namespace=namespace,
    )
    await apply(connection, namespace, "other")
    written = await following(news)
    assert isinstance(written, JobWritten)
    found = await connection.get(JOBS, "nobody", namespace=namespace)
    assert found["status"]["reason"]["code"] == "no-user"


async def test_job_naming_foreign_variables_is_rejected(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    await connection.create(
        JOBS,
        {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": "reads"},
            "spec": {"command": ["env"], "user": "joe", "environment": "0" * 64},
        },
        namespace=namespace,
    )
    await apply(connection, namespace, "other")
    written = await following(news)
    assert isinstance(written, JobWritten)
    assert written.user != "joe"
    found = await connection.get(JOBS, "reads", namespace=namespace)
    assert "spec.environment is written by the scheduler" in found["status"]["reason"]["text"]


async def test_scale_is_reported_once_even_after_downtime(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    await apply(connection, namespace, "one", workers=2, minWorkers=1)
    written = await following(news)
    assert isinstance(written, JobWritten)
    record = replace(record_of(written), spec=JobSpec(workers=2))
    await store.commit(AddJob(record, written.submission))
    scale = {"spec": {"replicas": 4}}
    await connection.patch(JOBS, "one", scale, namespace=namespace, subresource="scale")
    assert await following(news) == FieldWritten(written.id, "workers", 4)
    await store.commit(SaveJob(replace(record, spec=record.spec.changed(workers=4))))
    await store.close()

    await connection.patch(JOBS, "one", {"spec": {"workers": 3}}, namespace=namespace)
    again = make_store()
    assert [it.spec.workers for it in (await again.open()).jobs] == [4]
    assert await following(again.written()) == FieldWritten(written.id, "workers", 3)


async def test_priority_is_reported_once_even_after_downtime(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    await apply(connection, namespace, "one")
    written = await following(news)
    assert isinstance(written, JobWritten)
    record = record_of(written)
    await store.commit(AddJob(record, written.submission))
    await connection.patch(JOBS, "one", {"spec": {"priority": 70}}, namespace=namespace)
    assert await following(news) == FieldWritten(written.id, "priority", 70)
    await store.commit(SaveJob(replace(record, spec=record.spec.changed(priority=70))))
    await connection.patch(JOBS, "one", {"spec": {"suspend": True}}, namespace=namespace)
    assert await following(news) == SuspendWritten(written.id, suspend=True)
    await store.close()

    await connection.patch(JOBS, "one", {"spec": {"priority": 80}}, namespace=namespace)
    again = make_store()
    (job,) = (await again.open()).jobs
    assert job.spec.priority == 70
    assert await following(again.written()) == FieldWritten(written.id, "priority", 80)


async def test_deleted_lease_object_is_reported_and_restored(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    news = store.written()
    kept = LeaseRecord("l" * 26, "susan", "", "start-1", ("n/0",), 1.0)
    returned = LeaseRecord("m" * 26, "joe", "", "start-2", ("n/1",), 1.0)
    await store.commit(SaveLease(kept), SaveLease(returned))
    before = await connection.get(LEASES, kept.id, namespace=namespace)
    await store.commit(DropLease(returned.id))  # own changes are not reported
    await connection.delete(LEASES, kept.id, namespace=namespace)
    assert await following(news) == LeaseGone(kept.id)
    await store.restore(kept.id)
    await store.restore(returned.id)  # released: not created again
    listed = await connection.list(LEASES, namespace=namespace)
    assert [it["spec"] for it in listed.items] == [before["spec"]]
    await store.commit(DropLease(kept.id))
    await apply(connection, namespace, "marker")
    assert isinstance(await following(news), JobWritten)
