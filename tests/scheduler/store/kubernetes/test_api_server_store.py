"""The store on a real API server: committed records survive restarts and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from benchpool_cluster.access import Access
from benchpool_scheduler.contract import CommandEntry, JobSubmission, ScriptEntry, SnapshotFile
from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.kube import Connection, connect
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.resources.leases import BUILD_LEASES
from benchpool_scheduler.resources.pools import POOL_SETTINGS, PROJECTS
from benchpool_scheduler.service.process.identifiers import new_job_id
from benchpool_scheduler.store.kubernetes import KubernetesStore, WaitReport
from benchpool_scheduler.store.records import (
    AddJob,
    AddObject,
    CalibrationRecord,
    Conflict,
    DropJob,
    DropLease,
    LeaseRecord,
    Note,
    PreemptionRecord,
    SaveAttempt,
    SaveCalibration,
    SaveJob,
    SaveLease,
    SavePreemption,
    SaveUse,
    StopIntent,
    UseRecord,
)
from benchpool_support.job_records import T, add, job, started, status_of
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes
JOBS = TRAINING_JOBS.kind

MakeStore = Callable[..., KubernetesStore]


async def test_records_are_loaded_in_order(make_store: MakeStore, connection: Connection) -> None:
    await connection.apply(*(PROJECTS.kind, "vision", _project("vision")), manager="tests")
    await connection.apply(*(POOL_SETTINGS.kind, "default", _settings()), manager="tests")
    store = make_store()
    first = await store.open()
    assert first.jobs == ()
    one, two, three = job(submitted=T, key="k"), job(submitted=T + 1), job(submitted=T + 2)
    for record in (one, two, three):
        await store.commit(add(record))
    one, run = started(one, "node-a/0")
    two = replace(two, state=JobState.PAUSED, note=Note("paused-by-user", "Paused by susan."))
    paused = PreemptionRecord(one.id, 1, T + 3, two.id, "vision/train", "R15", 12.5, 1)
    lease = LeaseRecord(new_job_id(), "jemma", "", "spawn-1", ("node-a/1",), T)
    gone = LeaseRecord(new_job_id(), "jemma", "two", "spawn-2", ("node-a/2",), T)
    await store.commit(SaveJob(one), SaveAttempt(run), SavePreemption(paused), SaveJob(two))
    await store.commit(SaveLease(lease), SaveLease(gone))
    await store.commit(DropLease(gone.id), DropJob(three.id))
    used = (UseRecord("vision", "", 3600.0, T), UseRecord("vision", "susan", 1800.0, T))
    await store.commit(SaveUse(used))
    learned = (CalibrationRecord("learned", 2, -0.5, 0.25, "iiba"),)
    await store.commit(SaveCalibration(learned))
    await store.close()

    again = make_store()
    contents = await again.open()
    assert contents.jobs == (one, two)
    assert contents.attempts == (run,)
    assert contents.preemptions == (paused,)
    assert contents.leases == (lease,)
    assert [it for it in contents.use if it.project == "vision"] == list(used)
    assert contents.calibration == learned
    stored = again.submission(one.id)
    assert stored is not None
    submission = msgspec.json.decode(stored, type=JobSubmission)
    assert submission.entry == ScriptEntry("train.py", ["--fast"])
    assert again.submission(three.id) is None


def _settings() -> dict[str, Any]:
    return {
        "apiVersion": POOL_SETTINGS.kind.api_version,
        "kind": "PoolSettings",
        "metadata": {"name": "default"},
        "spec": {},
    }


def _project(name: str) -> dict[str, Any]:
    return {
        "apiVersion": PROJECTS.kind.api_version,
        "kind": "Project",
        "metadata": {"name": name},
        "spec": {"quota": 4},
    }


async def test_written_callback_follows_api_server_write(
    make_store: MakeStore, access: Access, namespace: str
) -> None:
    store = make_store()
    await store.open()
    records = [job(key=str(number)) for number in range(40)]
    await asyncio.gather(*(store.commit(add(it)) for it in records))
    seen: dict[str, str] = {}

    def written(id_: str) -> None:
        found = access.get(JOBS.path(namespace, id_))
        seen[id_] = found.get("status", {}).get("state", "")

    paused = [replace(it, state=JobState.PAUSED) for it in records]
    await store.commit(*map(SaveJob, paused), as_written=written)
    assert seen == {it.id: "paused" for it in records}


async def test_job_status_shows_reason_and_estimate(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store(epoch=3)
    await store.open()
    record = job()
    await store.commit(add(record))
    reason = Note("fair-share-reached", "Vision has its share of 4 GPUs.", "Wait.", {"share": 4})
    store.publish({record.id: WaitReport(reason, T + 10, T + 20, None)})
    waits = await until_async(
        lambda: status_of(connection, namespace, record.id), holds=lambda it: "reason" in it
    )
    assert waits["reason"]["numbers"] == {"share": 4}
    assert waits["estimatedStart"] == {
        "earliest": "2027-01-15T08:00:10.125000Z",
        "likely": "2027-01-15T08:00:20.125000Z",
    }
    record, run = started(record, "node-a/0", "node-a/1")
    await store.commit(SaveJob(record), SaveAttempt(run))
    runs = await status_of(connection, namespace, record.id)
    assert (runs["state"], runs["attempt"], runs["workers"], runs["epoch"]) == ("starting", 1, 1, 3)
    assert runs["attempts"][0]["workers"][0]["gpus"] == ["node-a/0", "node-a/1"]
    assert "estimatedStart" not in runs
    ended = replace(run.workers[0], ended=T + 9, exit_code=0, ended_by="itself")
    run = replace(run, workers=(ended,), ended=T + 9, exit_code=0)
    record = replace(record, state=JobState.SUCCEEDED, ended=T + 9, exit_code=0)
    await store.commit(SaveJob(record), SaveAttempt(run))
    over = await status_of(connection, namespace, record.id)
    complete = next(it for it in over["conditions"] if it["type"] == "Complete")
    assert (complete["status"], complete["reason"]) == ("True", "Succeeded")
    assert (over["exitCode"], over.get("workers", 0)) == (0, 0)


async def test_unchanged_wait_reason_is_not_rewritten_after_restart(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store(epoch=3)
    await store.open()
    record = job()
    await store.commit(add(record))
    reason = Note("fair-share-reached", "Vision has its share of 4 GPUs.", "Wait.", {"share": 4})
    store.publish({record.id: WaitReport(reason, T + 10, T + 20, None)})
    await store.close()
    again = make_store(epoch=4)
    await again.open()
    before = connection.writes
    other_numbers = Note(reason.code, "Vision has its share of 5 GPUs.", "Wait.", {"share": 5})
    again.publish({record.id: WaitReport(other_numbers)})
    await again.close()
    assert connection.writes == before
    assert (await status_of(connection, namespace, record.id))["epoch"] == 3
    restarted = make_store(epoch=5)
    await restarted.open()
    restarted.publish({record.id: WaitReport(Note("pool-full", "Full."))})
    await restarted.close()
    status = await status_of(connection, namespace, record.id)
    assert (status["reason"]["code"], status["epoch"]) == ("pool-full", 5)


async def test_worker_start_is_written_later_with_next_change(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    record = job()
    await store.commit(add(record))
    record, run = started(record, "node-a/0")
    await store.commit(SaveJob(record), SaveAttempt(run))
    before = connection.writes
    worker = replace(run.workers[0], started=T + 5)
    run = replace(run, workers=(worker,), started=T + 5)
    record = replace(record, state=JobState.RUNNING, started=T + 5)
    await store.commit(SaveJob(record), SaveAttempt(run))
    assert connection.writes == before
    status = partial(status_of, connection, namespace, record.id)
    await until_async(status, holds=lambda it: it["state"] == "running")
    again = make_store()
    assert (await again.open()).jobs == (record,)


async def test_gpu_has_one_holder(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    one, two = job(), job()
    await store.commit(add(one))
    await store.commit(add(two))
    one, run = started(one, "node-a/0")
    two, other = started(two, "node-a/0")
    await store.commit(SaveJob(one), SaveAttempt(run))
    with pytest.raises(Conflict, match="node-a/0 is held by"):
        await store.commit(SaveJob(two), SaveAttempt(other))
    lease = LeaseRecord(new_job_id(), "joe", "", "s", ("node-a/0",), T)
    with pytest.raises(Conflict):
        await store.commit(SaveLease(lease))
    ended = replace(run.workers[0], ended=T + 2)
    # One commit frees the GPU and then assigns it.
    await store.commit(
        SaveAttempt(replace(run, workers=(ended,), ended=T + 2)), SaveJob(two), SaveAttempt(other)
    )
    with pytest.raises(Conflict):
        await store.commit(SaveLease(lease))


async def test_idempotency_keys_and_ids_are_unique(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    await store.commit(add(job(key="k")))
    with pytest.raises(Conflict, match="key 'k'"):
        await store.commit(add(job(key="k")))
    await store.commit(add(job(key="k", user="joe")))
    with pytest.raises(Conflict, match="does not exist"):
        await store.commit(SaveJob(job()))


async def test_job_rejected_by_api_server_is_not_stored(
    make_store: MakeStore, connection: Connection
) -> None:
    store = make_store()
    await store.open()
    bad = JobSubmission(entry=ScriptEntry("a.py"), min_workers=2)
    with pytest.raises(InvalidInput, match="minWorkers is greater than workers"):
        await store.commit(AddJob(job(key="k"), msgspec.json.encode(bad)))
    await store.commit(add(job(key="k")))


async def test_uploads_belong_to_user_and_are_deleted_when_unused(
    make_store: MakeStore,
) -> None:
    store = make_store()
    await store.open()
    a, b, c = "a" * 64, "b" * 64, "c" * 64
    for sha256, user in ((a, "susan"), (b, "susan"), (b, "../joe"), (c, "joe")):
        await store.commit(AddObject(sha256, user, 3, T))
    record = job()
    brief = job()
    await store.commit(add(brief, SnapshotFile("train.py", c, 3)))
    assert set(await store.unused_objects(4e9)) <= {a, b}
    await store.commit(DropJob(brief.id))
    await store.commit(add(record, SnapshotFile("train.py", a, 3)))
    await until_async(lambda: store.unused_objects(4e9))
    assert set(await store.unused_objects(4e9)) == {b, c}
    assert store.objects_of("susan", [a, b, c]) == {a, b}
    assert store.objects_of("../joe", [a, b, c]) == {b}
    await store.close()
    again = make_store()
    await again.open()
    await asyncio.sleep(0)
    assert again.objects_of("../joe", [a, b, c]) == {b}
    # The age of a marker is that of its file, so these are new.
    assert set(await again.unused_objects(4e9)) == {b, c}
    assert await again.unused_objects(T - 1e9) == ()
    await again.forget_objects([b, c])
    assert again.objects_of("susan", [a, b, c]) == {a}
    await again.commit(DropJob(record.id))
    assert await again.unused_objects(4e9) == (a,)


async def test_long_file_list_is_stored_outside_job_object(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    files = [SnapshotFile(f"data/{number:05}.py", f"{number:064x}", 1) for number in range(5000)]
    record = job()
    await store.commit(add(record, *files))
    found = await connection.get(JOBS, record.id, namespace=namespace)
    assert len(found["spec"]["bundle"]) == 64
    assert "files" not in found["spec"]
    await store.close()
    again = make_store()
    await again.open()
    stored = again.submission(record.id)
    assert stored is not None
    assert msgspec.json.decode(stored, type=JobSubmission).files == files


async def test_job_variables_are_stored_outside_job_object(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    record, other = job(), job()
    for one, variables in ((record, {"API_KEY": "s3cret"}), (other, {"API_KEY": "s3cret"})):
        submission = JobSubmission(entry=CommandEntry(["env"]), env=variables)
        await store.commit(AddJob(one, msgspec.json.encode(submission)))
    found = await connection.get(JOBS, record.id, namespace=namespace)
    beside = await connection.get(JOBS, other.id, namespace=namespace)
    assert "s3cret" not in str(found)
    assert not found["spec"].get("env")
    # The hash is salted, so that its readers cannot guess the values.
    assert found["spec"]["environment"] != beside["spec"]["environment"]
    await store.close()
    again = make_store()
    await again.open()
    stored = again.submission(record.id)
    assert stored is not None
    assert msgspec.json.decode(stored, type=JobSubmission).env == {"API_KEY": "s3cret"}
    await again.commit(DropJob(record.id))
    assert again.submission(record.id) is None
    assert again.submission(other.id) is not None


async def test_lease_of_earlier_attempt_is_reused(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    lease = LeaseRecord(new_job_id(), "joe", "", "s", ("node-a/0",), T)
    await store.commit(SaveLease(lease))
    again = make_store()
    assert (await again.open()).leases == (lease,)
    with pytest.raises(Conflict):
        await again.commit(SaveLease(replace(lease, id=new_job_id())))
    await again.commit(DropLease(lease.id))
    listed = await connection.list(BUILD_LEASES.kind, namespace=namespace)
    assert listed.items == ()


async def test_many_jobs_are_written_concurrently(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    records = [job(submitted=T + number / 1000) for number in range(200)]
    await asyncio.gather(*(store.commit(add(record)) for record in records))
    changes: list[Any] = []
    for number, record in enumerate(records):
        record, run = started(record, f"node-{number}/0")
        changes += [SaveJob(record), SaveAttempt(run)]
    await store.commit(*changes)
    contents = await make_store().open()
    assert contents.jobs == tuple(it.job for it in changes if isinstance(it, SaveJob))


async def test_concurrent_commits_of_one_job_complete(
    make_store: MakeStore,
) -> None:
    store = make_store()
    await store.open()
    record = job()
    await store.commit(add(record))

    async def save(number: int) -> None:
        await asyncio.sleep(number % 7 / 1000)
        await store.commit(SaveJob(replace(record, spec=record.spec.changed(priority=number))))

    async with asyncio.timeout(60):
        await asyncio.gather(*(save(number) for number in range(200)))
    await store.commit(SaveJob(replace(record, spec=record.spec.changed(priority=1000))))
    (found,) = (await make_store().open()).jobs
    assert found.spec.priority == 1000


async def test_missing_permissions_are_reported(
    access: Access, make_store: MakeStore, namespace: str
) -> None:
    someone = access.service_account(namespace, "weak")
    async with connect(someone.kubeconfig) as weak:
        with pytest.raises(Unavailable, match="its account may list and watch them"):
            await make_store(connection=weak).open()


async def test_stop_request_is_written_before_commit_returns(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    record = job()
    await store.commit(add(record))
    record, run = started(record, "node-a/0")
    await store.commit(SaveJob(record), SaveAttempt(run))
    stop_request = StopIntent(
        Intent.PREEMPT, T + 3, 30.0, for_="speech/big", text="Paused for speech/big."
    )
    await store.commit(SaveJob(replace(record, state=JobState.PAUSING, stop_request=stop_request)))
    status = await status_of(connection, namespace, record.id)
    assert status["wish"]["for"] == "speech/big"
