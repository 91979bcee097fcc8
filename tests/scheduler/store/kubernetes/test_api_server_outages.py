"""Commits, watches and terms survive a stopped or killed API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.kube import Connection, RetryPolicy
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.service.process.identifiers import new_job_id
from benchpool_scheduler.store.inbound import SuspendWritten
from benchpool_scheduler.store.kubernetes import KubernetesStore
from benchpool_scheduler.store.records import AddJob, JobRecord, Note, SaveJob
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes
JOBS = TRAINING_JOBS.kind

MakeStore = Callable[..., KubernetesStore]


def a_job(number: int) -> JobRecord:
    at = 1_800_000_000.0 + number
    return JobRecord(new_job_id(), "n", "vision", "susan", JobState.QUEUED, at, at)


def paused(record: JobRecord) -> JobRecord:
    return replace(record, state=JobState.PAUSED, note=Note("paused-by-user", "Paused."))


SUBMISSION = msgspec.json.encode(JobSubmission(entry=CommandEntry(["true"])))


async def _waits(reports: list[str | None]) -> None:
    await until_async(lambda: reports and reports[-1] is not None)


@pytest.mark.parametrize("how", ["killed", "frozen"])
async def test_pending_writes_finish_after_api_server_outage(
    control_plane: ControlPlane,
    make_store: MakeStore,
    connection: Connection,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    monkeypatch.setattr("benchpool_scheduler.kube.wire.REQUEST_S", 2.0)
    monkeypatch.setattr(connection, "_patience", RetryPolicy(total_s=3.0))
    reports: list[str | None] = []
    store = make_store(epoch=1, report=reports.append)
    await store.open()
    news = store.written()
    records = [a_job(number) for number in range(20)]
    await asyncio.gather(*(store.commit(AddJob(it, SUBMISSION)) for it in records))

    processes = control_plane.processes
    if how == "killed":
        processes.kill("kube-apiserver")
    else:
        processes.freeze("kube-apiserver")
    commit = asyncio.ensure_future(store.commit(*(SaveJob(paused(it)) for it in records)))
    await _waits(reports)
    assert not commit.done()
    if how == "killed":
        control_plane.restart("kube-apiserver")  # dies with the thread that starts it
    else:
        processes.thaw("kube-apiserver")
    async with asyncio.timeout(60):
        await commit
    assert reports[-1] is None

    # The watch continues as well.
    patch: dict[str, Any] = {"spec": {"suspend": True}}
    await connection.patch(JOBS, records[0].id, patch, namespace=namespace)
    async with asyncio.timeout(90):
        assert await anext(news) == SuspendWritten(records[0].id, True)
    contents = await make_store(epoch=1).open()
    assert contents.jobs == tuple(paused(it) for it in records)
