"""Edits of a job around its acceptance are applied, or reverted with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import JobSubmission, ScriptEntry
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.kube import Connection, KubeNotFound
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.store.inbound import (
    FieldWritten,
    JobGone,
    JobWritten,
    SuspendWritten,
    Written,
)
from benchpool_scheduler.store.kubernetes import KubernetesStore
from benchpool_scheduler.store.kubernetes.cache import CachedJob
from benchpool_scheduler.store.kubernetes.write_priority import WritePriority
from benchpool_scheduler.store.records import AddJob, JobRecord, Note, SaveAsked, SaveJob
from benchpool_support.waiting import PATIENCE_S, until_async

pytestmark = pytest.mark.kubernetes
JOBS = TRAINING_JOBS.kind
MakeStore = Callable[..., KubernetesStore]
PUT_BACK = (
    "spec.cpus was changed after the job had been accepted, and restored. It stays as accepted; "
    "delete the job and create another."
)


class Desk:
    """Client of a namespace in which a user writes one job, with the store that watches it."""

    def __init__(self, connection: Connection, namespace: str, store: KubernetesStore) -> None:
        self.connection, self.namespace, self.store = connection, namespace, store
        self.news = store.written()

    async def send(self, **spec: Any) -> JobWritten:
        """Create the job and return the event of the store about it."""
        full = {"script": {"path": "train.py"}, "user": "susan", "gpus": 1, "cpus": 1} | spec
        body = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": "one"}}
        await self.connection.create(JOBS, {**body, "spec": full}, namespace=self.namespace)
        written = await self.next_event()
        assert isinstance(written, JobWritten)
        return written

    async def next_event(self) -> Written:
        """Return the next event of the store."""
        async with asyncio.timeout(PATIENCE_S):
            return await anext(self.news)

    async def edit(self, **spec: Any) -> None:
        """Patch the spec of the job."""
        await self.connection.patch(JOBS, "one", {"spec": spec}, namespace=self.namespace)

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the object fulfils a condition, and return it."""
        return await until_async(self.found, holds=holds)

    async def found(self) -> dict[str, Any]:
        """Return the object of the job."""
        got: dict[str, Any] = await self.connection.get(JOBS, "one", namespace=self.namespace)
        return got


@pytest.fixture
async def desk(make_store: MakeStore, connection: Connection, namespace: str) -> Desk:
    """Return a desk with an open store."""
    store = make_store()
    await store.open()
    return Desk(connection, namespace, store)


def record_of(written: JobWritten) -> JobRecord:
    submission = msgspec.json.decode(written.submission, type=JobSubmission)
    state = JobState.QUEUED
    return JobRecord(
        written.id, "one", "vision", "susan", state, 1.0, 1.0, spec=JobSpec(gpus=submission.gpus)
    )


def accepted(job: dict[str, Any]) -> bool:
    return "id" in job.get("status", {})


def refusal(job: dict[str, Any]) -> str | None:
    conditions = job["status"]["conditions"]
    return next((str(it["message"]) for it in conditions if it["type"] == "EditRefused"), None)


async def seen(desk: Desk, generation: int) -> None:
    """Wait until the store has seen an edit."""
    items = desk.store.reflector.items
    await until_async(lambda: items[desk.namespace, "one"].generation >= generation)


async def test_edit_before_acceptance_is_reverted_with_reason(desk: Desk) -> None:
    written = await desk.send()
    await desk.edit(cpus=4, priority=7)
    await seen(desk, 2)
    await desk.store.commit(AddJob(record_of(written), written.submission))
    job = await desk.until(accepted)
    assert (job["spec"]["cpus"], job["spec"]["priority"]) == (1, 7)
    assert refusal(job) == PUT_BACK
    assert job["status"]["observedGeneration"] == job["metadata"]["generation"]


async def test_edit_between_acceptance_and_status_is_reverted(
    desk: Desk, make_store: MakeStore
) -> None:
    written = await desk.send()
    kept: list[tuple[CachedJob, WritePriority]] = []
    later = desk.store.writer.later
    desk.store.writer.later = lambda *one: kept.append(one)  # type: ignore[method-assign]
    await desk.store.commit(AddJob(record_of(written), written.submission))
    await desk.edit(cpus=4)
    await seen(desk, 2)
    assert not accepted(await desk.found())
    for one in kept:
        later(*one)
    job = await desk.until(accepted)
    assert (job["spec"]["cpus"], refusal(job)) == (1, PUT_BACK)
    again = make_store()
    (found,) = (await again.open()).jobs
    assert found.spec.cpus == 1


async def test_unseen_edit_is_reverted(desk: Desk) -> None:
    written = await desk.send()
    desk.store.listening.cancel()  # stops the watch
    record = record_of(written)
    await desk.edit(cpus=4, suspend=False)
    await desk.store.commit(AddJob(record, written.submission))
    note = Note("paused-by-user", "It was paused.")
    await desk.store.commit(SaveJob(replace(record, state=JobState.PAUSED, note=note)))
    job = await desk.found()
    assert (job["spec"]["cpus"], job["status"]["state"], refusal(job)) == (1, "paused", PUT_BACK)


async def test_edit_during_refusal_is_evaluated_again(desk: Desk) -> None:
    written = await desk.send(project="no-such")
    await desk.edit(project="vision")
    await seen(desk, 2)
    await desk.store.refuse(written.id, Note("no-such-project", "There is no project 'no-such'."))
    second = await desk.next_event()
    assert isinstance(second, JobWritten)
    assert msgspec.json.decode(second.submission, type=JobSubmission).project == "vision"
    await desk.store.commit(AddJob(record_of(second), second.submission))
    job = await desk.until(accepted)
    assert refusal(job) is None
    assert [it["status"] for it in job["status"]["conditions"] if it["type"] == "Accepted"] == [
        "True"
    ]


async def test_job_deleted_before_acceptance_is_not_recreated(desk: Desk) -> None:
    written = await desk.send()
    await desk.connection.delete(JOBS, "one", namespace=desk.namespace)
    await until_async(lambda: (desk.namespace, "one") not in desk.store.reflector.items)
    await desk.store.commit(AddJob(record_of(written), written.submission))
    assert await desk.next_event() == JobGone(written.id)
    assert (await desk.connection.list(JOBS, namespace=desk.namespace)).items == ()
    with pytest.raises(KubeNotFound):
        await desk.found()


async def asked(desk: Desk, **spec: Any) -> JobRecord:
    """Send a job, accept it and return its record."""
    written = await desk.send(**spec)
    record = record_of(written)
    record = replace(
        record,
        spec=record.spec.changed(
            workers=spec.get("workers", 1), min_workers=spec.get("minWorkers", 1)
        ),
    )
    await desk.store.commit(AddJob(record, written.submission))
    await desk.until(accepted)
    return record


async def test_change_by_api_is_written_to_object_spec(desk: Desk, make_store: MakeStore) -> None:
    record = await asked(desk)
    spec = record.spec.changed(workers=3, min_workers=3, priority=80, gpus=2, time_limit_s=60)
    spec = spec.changed(gpu_models=("A100",))
    changed = replace(record, spec=spec)
    fields = ("workers", "priority", "gpus", "time_limit_s", "gpu_models")
    await desk.store.commit(SaveJob(changed), SaveAsked(record.id, fields))
    job = await desk.found()
    assert (job["spec"]["workers"], job["spec"]["priority"], job["spec"]["gpus"]) == (3, 80, 2)
    assert job["spec"]["timeLimitSeconds"] == 60
    assert job["status"]["observedGeneration"] == job["metadata"]["generation"]
    assert refusal(job) is None
    await desk.edit(suspend=True)
    news = [await desk.next_event()]
    while not isinstance(news[-1], SuspendWritten):  # its own writes may come back first
        news.append(await desk.next_event())
    assert set(news[:-1]) <= {
        FieldWritten(record.id, "workers", 3),
        FieldWritten(record.id, "priority", 80),
        FieldWritten(record.id, "gpus", 2),
        FieldWritten(record.id, "time_limit_s", 60),
        FieldWritten(record.id, "gpu_models", ("A100",)),
    }
    again = make_store()
    (found,) = (await again.open()).jobs
    assert (found.spec.workers, found.spec.least_workers, found.spec.priority) == (3, 3, 80)
    assert (found.spec.gpus, found.spec.time_limit_s) == (2, 60)
    assert found.spec.gpu_models == ("A100",)


async def test_edit_during_downtime_is_change_request(desk: Desk, make_store: MakeStore) -> None:
    record = await asked(desk)
    await desk.store.close()
    await desk.edit(gpuModels=["A100"], timeLimitSeconds=60)
    again = make_store()
    (found,) = (await again.open()).jobs
    assert (found.spec.gpu_models, found.spec.time_limit_s) == ((), None)
    written = again.written()
    news = [await anext(written), await anext(written)]
    assert news == [
        FieldWritten(record.id, "time_limit_s", 60),
        FieldWritten(record.id, "gpu_models", ("A100",)),
    ]


async def test_renamed_job_is_loaded_with_new_name(desk: Desk, make_store: MakeStore) -> None:
    record = await asked(desk)
    await desk.store.commit(SaveJob(replace(record, name="new")), SaveAsked(record.id, ("name",)))
    job = await desk.found()
    assert (job["spec"]["name"], refusal(job)) == ("new", None)
    await desk.edit(name="newer")
    news = [await desk.next_event()]
    while news[-1] != FieldWritten(record.id, "name", "newer"):  # its own may come first
        news.append(await desk.next_event())
    assert set(news[:-1]) <= {FieldWritten(record.id, "name", "new")}
    (found,) = (await make_store().open()).jobs
    assert found.name == "newer"


async def test_newer_edit_of_object_is_not_overwritten(desk: Desk) -> None:
    record = await asked(desk)
    listening = desk.store.listening
    listening.cancel()  # the store does not see the next edit
    await desk.edit(priority=20)
    changed = replace(record, spec=record.spec.changed(priority=80))
    await desk.store.commit(SaveJob(changed), SaveAsked(record.id, ("priority",)))
    assert (await desk.found())["spec"]["priority"] == 20


async def test_pending_change_request_is_not_overwritten(desk: Desk) -> None:
    record = await asked(desk)
    await desk.edit(workers=3)
    assert await desk.next_event() == FieldWritten(record.id, "workers", 3)  # reported, not applied
    changed = replace(record, spec=record.spec.changed(priority=80))
    await desk.store.commit(SaveJob(changed), SaveAsked(record.id, ("priority",)))
    spec = (await desk.found())["spec"]
    assert (spec["workers"], spec["priority"]) == (3, 80)


async def test_rejected_change_request_is_reverted_with_reason(desk: Desk) -> None:
    record = await asked(desk, workers=2)
    await desk.edit(workers=3)
    assert await desk.next_event() == FieldWritten(record.id, "workers", 3)
    desk.store.put_back(record.id, "workers", "It runs with all of its 2 workers or none.")
    job = await desk.until(lambda it: refusal(it) is not None)
    assert (job["spec"]["workers"], refusal(job)) == (
        2,
        "It runs with all of its 2 workers or none.",
    )


async def test_allowed_edit_is_reported_and_kept(desk: Desk) -> None:
    submission = JobSubmission(
        entry=ScriptEntry("train.py"),
        gpus=2,
        cpus=1.5,
        memory_gib=3,
        time_limit_s=60,
        env={"A": "1"},
        gpu_models=("A100",),
    )
    record = JobRecord(
        "o" * 26, "one", "vision", "susan", JobState.QUEUED, 1.0, 1.0, spec=submission.spec
    )
    await desk.store.commit(AddJob(record, msgspec.json.encode(submission)))
    space = desk.namespace
    await desk.connection.patch(JOBS, record.id, {"spec": {"suspend": True}}, namespace=space)
    assert await desk.next_event() == SuspendWritten(record.id, True)
    await desk.store.commit(SaveJob(replace(record, state=JobState.PAUSED)))
    job = await desk.connection.get(JOBS, record.id, namespace=space)
    assert refusal(job) is None
    assert (job["spec"]["suspend"], job["status"]["suspend"]) == (True, True)
