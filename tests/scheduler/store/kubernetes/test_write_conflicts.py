"""Writes to a real API server with conflicts: edits, lost responses, other leaders and outages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.kube import Connection, KubeUnavailable, NotLeading
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.store.kubernetes import KubernetesStore
from benchpool_scheduler.store.records import (
    DropJob,
    SaveAttempt,
    SaveJob,
)
from benchpool_support.job_records import T, add, job, started, status_of
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes
JOBS = TRAINING_JOBS.kind

MakeStore = Callable[..., KubernetesStore]


async def test_concurrent_user_edit_delays_write_without_loss(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store(epoch=1)
    await store.open()
    record = job()
    await store.commit(add(record))
    for number in range(5):
        label = {"metadata": {"labels": {"mine": str(number)}}}
        record, run = started(record, "node-a/0")
        await asyncio.gather(
            connection.patch(JOBS, record.id, label, namespace=namespace),
            store.commit(SaveJob(record), SaveAttempt(run)),
        )
        run = replace(run, workers=(replace(run.workers[0], ended=T + 2),), ended=T + 2)
        record = replace(record, state=JobState.QUEUED)
        await store.commit(SaveJob(record), SaveAttempt(run))
    found = await connection.get(JOBS, record.id, namespace=namespace)
    assert found["metadata"]["labels"]["mine"] == "4"
    assert found["status"]["attempt"] == 5


async def test_write_with_lost_response_is_recognised(
    make_store: MakeStore,
    connection: Connection,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = make_store(epoch=1)
    await store.open()
    exchange = connection.exchange
    dropped: list[tuple[str, str]] = []

    async def drop_first_answer(method: str, path: str, *more: Any) -> Any:
        answer = await exchange(method, path, *more)
        writes = method in ("POST", "PUT") and f"/{JOBS.plural}" in path
        if writes and (method, path) not in dropped:
            dropped.append((method, path))
            raise ConnectionResetError("the answer was lost")
        return answer

    monkeypatch.setattr(connection, "exchange", drop_first_answer)
    record = job()
    await store.commit(add(record))
    record, run = started(record, "node-a/0")
    await store.commit(SaveJob(record), SaveAttempt(run))
    assert len(dropped) == 2
    listed = await connection.list(JOBS, namespace=namespace)
    assert [it["metadata"]["name"] for it in listed.items] == [record.id]
    assert (await make_store(epoch=1).open()).jobs == (record,)


async def test_replaced_leader_stops_writing(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    lost: list[NotLeading] = []
    old = make_store(epoch=1, lost=lost.append)
    await old.open()
    record = job()
    await old.commit(add(record))
    new = make_store(epoch=2)
    await new.open()
    mine, run = started(record, "node-a/0")
    await new.commit(SaveJob(mine), SaveAttempt(run))
    theirs, other = started(record, "node-b/0")
    with pytest.raises(NotLeading, match="leader 2"):
        await old.commit(SaveJob(theirs), SaveAttempt(other))
    assert lost
    status = await status_of(connection, namespace, record.id)
    assert status["attempts"][0]["workers"][0]["gpus"] == ["node-a/0"]


async def test_late_write_of_old_leader_is_overwritten(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    old = make_store(epoch=1)
    await old.open()
    record = job()
    await old.commit(add(record))
    new = make_store(epoch=2)
    await new.open()
    theirs, other = started(record, "node-b/0")
    await old.commit(SaveJob(theirs), SaveAttempt(other))  # its leader check came too late
    mine, run = started(record, "node-a/0")
    await new.commit(SaveJob(mine), SaveAttempt(run))
    status = await status_of(connection, namespace, record.id)
    assert status["epoch"] == 2
    assert status["attempts"][0]["workers"][0]["gpus"] == ["node-a/0"]


async def test_late_write_of_old_leader_is_reverted(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    old = make_store(epoch=1)
    await old.open()
    record = job()
    await old.commit(add(record))
    new = make_store(epoch=2)
    await new.open()
    theirs, other = started(record, "node-b/0")
    await old.commit(SaveJob(theirs), SaveAttempt(other))
    await until_async(
        lambda: status_of(connection, namespace, record.id),
        holds=lambda it: it["epoch"] == 2,
    )
    status = await status_of(connection, namespace, record.id)
    assert (status["state"], status.get("attempts", [])) == ("queued", [])


async def test_failed_leader_check_blocks_writes(
    make_store: MakeStore,
    connection: Connection,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost: list[NotLeading] = []
    store = make_store(lost=lost.append)
    await store.open()
    record = job()
    await store.commit(add(record))
    await until_async(lambda: status_of(connection, namespace, record.id))
    writes = connection.writes

    def no() -> None:
        raise NotLeading("The lease ran out.")

    monkeypatch.setattr(connection, "guard", no)
    record, run = started(record, "node-a/0")
    with pytest.raises(NotLeading):
        await store.commit(SaveJob(record), SaveAttempt(run))
    assert connection.writes == writes
    assert lost


async def test_commit_waits_and_reports_api_server_outage(
    make_store: MakeStore,
    connection: Connection,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[str | None] = []
    store = make_store(report=reports.append)
    await store.open()
    record = job()
    await store.commit(add(record))
    request = connection.request
    away = True

    async def closed(method: str, *words: Any, **more: Any) -> bytes:
        if away and method != "GET":
            raise KubeUnavailable("The API server is away.")
        return await request(method, *words, **more)

    monkeypatch.setattr(connection, "request", closed)
    record, run = started(record, "node-a/0")
    commit = asyncio.ensure_future(store.commit(SaveJob(record), SaveAttempt(run)))
    await until_async(lambda: reports)
    assert not commit.done()
    assert reports[0] is not None
    assert "running jobs continue" in reports[0]
    commit.cancel()  # the waiting caller is cancelled; the started write finishes
    with contextlib.suppress(asyncio.CancelledError):
        await commit
    away = False
    await until_async(
        lambda: status_of(connection, namespace, record.id),
        holds=lambda it: it.get("attempt") == 1,
    )
    await until_async(lambda: reports[-1] is None)


async def test_deleted_object_does_not_block_writes(
    make_store: MakeStore, connection: Connection, namespace: str
) -> None:
    store = make_store()
    await store.open()
    record, other = job(), job()
    await store.commit(add(record))
    await store.commit(add(other))
    await connection.delete(JOBS, record.id, namespace=namespace)
    record, run = started(record, "node-a/0")
    other, second = started(other, "node-a/1")
    await store.commit(SaveJob(record), SaveAttempt(run), SaveJob(other), SaveAttempt(second))
    await store.commit(DropJob(record.id))
    assert (await status_of(connection, namespace, other.id))["attempt"] == 1
