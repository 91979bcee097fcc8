"""Admitted pods are jobs: counted, queued and shown. Their jobs end when the pods are gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import JobSubmission, PodsEntry, State
from benchpool_scheduler.contract.changes import JobChange
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.service import Pool
from benchpool_support.admitted import DONE, AdmittingScriptedRuntime, workload
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
    until_job,
    waiting,
)
from benchpool_support.scripted import devices
from benchpool_support.waiting import PATIENCE_S, until_async

OTHER = "v" * 26

POOL = """
version: 1
projects:
  - {name: susan, quota: 2, limit: 2, members: [susan]}
  - {name: joe, quota: 1, members: [joe]}
"""


@pytest.fixture
def runtime() -> AdmittingScriptedRuntime:
    """Runtime with three GPUs."""
    return AdmittingScriptedRuntime(devices(3))


@pytest.fixture
async def pool(tmp_path: Path, runtime: AdmittingScriptedRuntime) -> AsyncIterator[Pool]:
    """Pool whose runtime admits pods."""
    async with opened(make_pool(tmp_path, configuration=story(POOL), runtime=runtime)) as pool:
        yield pool


async def accepted(pool: Pool, job: str) -> None:
    """Wait until the pool has accepted a job."""
    await until_async(lambda: pool.ledger.job(job) is not None)


async def test_pod_becomes_job_of_namespace_user_and_project(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    runtime.admits.put(workload(gpus=2, preemptible=True))
    await accepted(pool, DONE)
    job = await reached(pool, DONE, State.RUNNING)
    assert (job.user, job.project, job.name) == ("susan", "susan", "llm-7d9c-x2x4q")
    assert (job.gpus, job.workers, job.preemptible) == (2, 1, True)
    assert job.tags == ("pods", "replicaset", "team-a")
    assert job in pool.jobs.select(SUSAN)
    assert job not in pool.jobs.select(JOE, all=True)


async def test_pod_waits_by_pool_rules_with_reason(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    runtime.admits.put(workload(gpus=2), workload(OTHER, pods=("b",)))
    await accepted(pool, OTHER)
    await accepted(pool, DONE)
    states = {State.RUNNING, State.QUEUED}
    one = await until_job(pool, DONE, lambda it: it.state in states and it.reason is None)
    assert (await waiting(pool, OTHER)).numbers
    waits = pool.jobs.detail(ADMIN, OTHER).job
    assert (one.state, waits.state) == (State.RUNNING, State.QUEUED)


async def test_impossible_request_is_reported_on_pod(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    runtime.admits.put(workload(gpus=5))
    async with asyncio.timeout(PATIENCE_S):
        message = await runtime.admits.until_reason(DONE, "not accepted")
    assert "5 GPUs" in message
    assert pool.ledger.job(DONE) is None


async def test_unknown_project_is_reported_on_pod(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    runtime.admits.put(workload(project="nobodys"))
    async with asyncio.timeout(PATIENCE_S):
        message = await runtime.admits.until_reason(DONE, "not accepted")
    assert "There is no project 'nobodys'" in message


async def test_gpu_resource_without_node_is_rejected(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    runtime.admits.put(workload(resource="nvidia.com/mig-1g.10gb"))
    async with asyncio.timeout(PATIENCE_S):
        await runtime.admits.until_reason(DONE, "nvidia.com/mig-1g.10gb, which no node")


async def test_queued_job_ends_when_pods_are_gone(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    running = workload(gpus=2)
    runtime.admits.put(running)
    await accepted(pool, DONE)
    await reached(pool, DONE, State.RUNNING)
    runtime.admits.put(workload(OTHER, pods=("b",)))
    await accepted(pool, OTHER)
    runtime.admits.take(OTHER)
    ended = await reached(pool, OTHER, State.CANCELLED)
    assert ended.reason is not None
    assert "Its pods no longer exist" in ended.reason.text
    assert (await reached(pool, DONE, State.RUNNING)).state is State.RUNNING


async def test_preempted_job_ends_when_owner_recreates_pods(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    runtime.admits.put(workload(gpus=2, preemptible=True))
    await accepted(pool, DONE)
    await reached(pool, DONE, State.RUNNING)
    (worker,) = await runtime.until_launched(1)
    assert runtime.launched[worker].admitted is False  # a workstation has no containers
    await pool.jobs.act(SUSAN, DONE, "pause")
    await runtime.until_noticed(1)
    runtime.admits.take(DONE)
    runtime.end(worker, None)
    await reached(pool, DONE, State.CANCELLED)


async def test_cancelled_job_is_reported_on_pods(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    runtime.admits.put(workload(gpus=2), workload(OTHER, pods=("b",)))
    await accepted(pool, DONE)
    await accepted(pool, OTHER)
    await reached(pool, DONE, State.RUNNING)
    await waiting(pool, OTHER)
    await pool.jobs.act(SUSAN, OTHER, "cancel")
    async with asyncio.timeout(PATIENCE_S):
        message = await runtime.admits.until_reason(OTHER, "has ended")
    assert message == "Job vvvvvvvv has ended (cancelled), so it gets no GPU; delete the pod."


@pytest.mark.parametrize("caller", [SUSAN, HUB])
async def test_pods_entry_cannot_be_submitted(pool: Pool, caller: object) -> None:
    entry = PodsEntry("team-a", "Pod", "train", ["train"])
    with pytest.raises(InvalidInput) as refused:
        await pool.jobs.submit(caller, JobSubmission(entry))  # type: ignore[arg-type]
    assert refused.value.code == "pods-not-sent"


@pytest.mark.parametrize(
    "asked", [JobChange(gpus=1), JobChange(workers=2), JobChange(project="joe")]
)
async def test_pod_request_is_fixed_except_priority(
    pool: Pool, runtime: AdmittingScriptedRuntime, asked: JobChange
) -> None:
    runtime.admits.put(workload(gpus=2), workload(OTHER, gpus=2, pods=("b",)))
    await accepted(pool, DONE)
    await accepted(pool, OTHER)
    await waiting(pool, OTHER)
    with pytest.raises(Refused) as refused:
        await pool.jobs.act(ADMIN, OTHER, "change", asked)
    assert refused.value.code == "pods-are-fixed"
    changed = await pool.jobs.act(ADMIN, OTHER, "change", JobChange(priority=90))
    assert changed.priority == 90


async def test_job_with_equal_tag_is_unaffected(
    pool: Pool, runtime: AdmittingScriptedRuntime
) -> None:
    job = await pool.jobs.submit(JOE, sleeper(tags=("pods",)))
    runtime.admits.put(workload())
    await accepted(pool, DONE)
    assert (await reached(pool, job.id, State.RUNNING)).state is State.RUNNING


async def test_pods_keep_their_job_after_restart(
    tmp_path: Path, runtime: AdmittingScriptedRuntime
) -> None:
    first = make_pool(tmp_path, configuration=story(POOL), runtime=runtime)
    async with opened(first) as pool:
        runtime.admits.put(workload(), workload(OTHER, gpus=2, pods=("b",)))
        await accepted(pool, DONE)
        await accepted(pool, OTHER)
        await reached(pool, DONE, State.RUNNING)
    runtime.admits.take(OTHER)
    second = make_pool(tmp_path, configuration=story(POOL), runtime=runtime)
    async with opened(second) as pool:
        await reached(pool, OTHER, State.CANCELLED)
        assert (await reached(pool, DONE, State.RUNNING)).attempt == 1
