"""A restarted scheduler recovers its workers from the API server alone."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.placements import Record
from benchpool_scheduler.contract.kubernetes import attempt_name
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import EndedBy, Launch, WorkerId
from benchpool_scheduler.runtime.kubernetes import manifests
from benchpool_support.pods import Stand, launches, pause
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes


async def test_running_workers_are_found_and_can_be_stopped(stand: Stand) -> None:
    a, b, _ = stand.nodes
    workers = await stand.run(launches([(a, (0, 1)), (b, (0, 1))]))
    after = await stand.restarted(workers)
    await after.started(*workers)
    for worker in workers:
        await after.runtime.stop(worker, pause(1.0))
    assert {end.by for end in await after.ended(*workers)} == {EndedBy.NOTICE}


async def test_end_during_downtime_is_reported(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    await stand.close()
    (pod,) = await stand.pods(worker.job)
    await stand.connection.patch(
        kinds.PODS,
        pod["metadata"]["name"],
        {"metadata": {"annotations": {"tests/exit": "7"}}},
        namespace=stand.settings.namespace,
    )
    after = await stand.restarted([worker])
    (ended,) = await after.ended(worker)
    assert ended.exit_code == 7


async def test_success_of_pod_deleted_during_downtime_is_reported(
    stand: Stand,
) -> None:
    a, b, _ = stand.nodes
    first, second = await stand.run(launches([(a, (0,)), (b, (0,))]))
    await stand.close()
    space, name = stand.settings.namespace, attempt_name(first.job, 1)
    pod, _ = await stand.pods(first.job)
    ends = {"metadata": {"annotations": {"tests/exit": "0"}}}
    await stand.connection.patch(kinds.PODS, pod["metadata"]["name"], ends, namespace=space)

    async def counted() -> bool:
        job = await stand.connection.get(kinds.JOBS, name, namespace=space)
        return bool(job["status"].get("completedIndexes") == "0")

    await until_async(counted)
    await stand.connection.delete(kinds.PODS, pod["metadata"]["name"], namespace=space)
    await stand.until_pods(first.job, 1)
    after = await stand.restarted([first, second])
    (ended,) = await after.ended(first)
    assert (ended.exit_code, ended.by) == (0, EndedBy.ITSELF)
    assert [event for event in after.events if event.worker == second] == await after.started(
        second
    )


async def test_success_of_pod_deleted_while_opening_is_reported(
    stand: Stand,
) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    await stand.close()
    space, name = stand.settings.namespace, attempt_name(worker.job, 1)
    (pod,) = await stand.pods(worker.job)
    listing = stand.connection.list

    async def counted() -> bool:
        job = await stand.connection.get(kinds.JOBS, name, namespace=space)
        return bool(job["status"].get("completedIndexes") == "0")

    async def late(kind: kinds.Kind, **more: Any) -> Any:
        found = await listing(kind, **more)
        if kind == kinds.JOBS:
            ends = {"metadata": {"annotations": {"tests/exit": "0"}}}
            await stand.connection.patch(kinds.PODS, pod["metadata"]["name"], ends, namespace=space)
            await until_async(counted)
            await stand.connection.delete(kinds.PODS, pod["metadata"]["name"], namespace=space)
            await stand.until_pods(worker.job, 0)
        return found

    stand.connection.list = late  # type: ignore[method-assign]
    after = await stand.restarted([worker])
    (ended,) = await after.ended(worker)
    assert (ended.exit_code, ended.by) == (0, EndedBy.ITSELF)


async def test_worker_without_pod_is_lost(stand: Stand) -> None:
    missing = WorkerId("x" * 26, 1, 0)
    after = await stand.restarted([missing])
    (ended,) = await after.ended(missing)
    assert ended.by is EndedBy.LOST


async def test_unexpected_pods_are_deleted(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    after = await stand.restarted([])
    await after.until_pods(worker.job, 0)
    assert after.events == []


async def test_job_created_late_by_stopped_leader_is_deleted(stand: Stand) -> None:
    stand.hinder_opening()
    stale = launches([(stand.nodes[0], (0,))])
    await stand.start(stale)
    await stand.until_pods(stale[0].worker.job, 1)
    after = await stand.restarted([])
    await after.until_pods(stale[0].worker.job, 0)
    late = launches([(stand.nodes[0], (0,))])
    body = manifests.job(late[0], ["x"], after.settings, 1)
    await after.connection.create(kinds.JOBS, body, namespace=after.settings.namespace)

    async def gone() -> bool:
        return not (
            await after.connection.list(kinds.JOBS, namespace=after.settings.namespace)
        ).items

    await until_async(gone)
    assert after.events == []


async def test_gang_with_closed_gates_is_opened(stand: Stand) -> None:
    a, b, _ = stand.nodes
    gang = launches([(a, (0,)), (b, (0,))])
    stand.hinder_opening()
    await stand.start(gang)
    await stand.until_pods(gang[0].worker.job, 2)
    workers = [launch.worker for launch in gang]
    after = await stand.restarted(workers)
    await after.started(*workers)
    pods = await after.pods(workers[0].job)
    assert [pod["spec"]["nodeName"] for pod in pods] == [a, b]


async def test_partially_created_attempt_is_lost_without_running(stand: Stand) -> None:
    (launch,) = launches([(stand.nodes[0], (0,))])
    stand.hinder_opening()
    await stand.start([launch])
    job = launch.worker.job
    await stand.until_pods(job, 1)
    await stand.connection.delete(kinds.SECRETS, f"bp-{job}-1", namespace=stand.settings.namespace)
    after = await stand.restarted([launch.worker])
    (ended,) = await after.ended(launch.worker)
    assert ended.by is EndedBy.LOST


async def half_made(stand: Stand, pods: int = 1) -> Launch:
    """Create a worker without its Secret, as if its leader was killed in between, and return it."""
    await stand.close()  # else it deletes the unknown Job
    (launch,) = launches([(stand.nodes[0], (0,))])
    body = manifests.job(launch, [manifests.placement(*_place(launch))], stand.settings, 1)
    await stand.connection.create(kinds.JOBS, body, namespace=stand.settings.namespace)
    await stand.until_pods(launch.worker.job, pods)
    return launch


def _place(launch: Launch) -> tuple[str, tuple[str, ...]]:
    return launch.nodes[0], tuple(launch.gpus)


async def test_gates_stay_closed_until_creation_is_verified(
    stand: Stand, plane: ControlPlane
) -> None:
    launch = await half_made(stand)
    stand.answer_late(kinds.SECRETS, 1.0)
    with Record(plane.access, stand.settings.namespace) as record:
        after = await stand.restarted([launch.worker])
        (ended,) = await after.ended(launch.worker)
        begun = record.complete()
    assert (ended.by, begun) == (EndedBy.LOST, [])
    assert after.events == [ended]


async def test_partially_created_attempt_without_pods_is_lost(
    stand: Stand, plane: ControlPlane
) -> None:
    plane.processes.freeze("kube-controller-manager")
    try:
        launch = await half_made(stand, pods=0)
        with Record(plane.access, stand.settings.namespace) as record:
            after = await stand.restarted([launch.worker])
            (ended,) = await after.ended(launch.worker)
            plane.processes.thaw("kube-controller-manager")
            await after.until_pods(launch.worker.job, 0)
            begun = record.complete()
    finally:
        plane.processes.thaw("kube-controller-manager")
    assert (ended.by, begun) == (EndedBy.LOST, [])


async def test_two_leaders_start_attempt_once(stand: Stand) -> None:
    gang = launches([(stand.nodes[0], (0,)), (stand.nodes[1], (0,))])
    workers = [launch.worker for launch in gang]
    other = await stand.beside()
    await stand.start(gang)
    await other.start(gang)
    await stand.started(*workers)
    await other.started(*workers)
    assert len(await stand.pods(workers[0].job)) == 2


async def test_gang_is_created_despite_api_server_outage(stand: Stand) -> None:
    gang = launches([(stand.nodes[0], (0,)), (stand.nodes[1], (0,))])
    stand.interrupt_once(kinds.SECRETS)
    await stand.run(gang)
    name = f"bp-{gang[0].worker.job}-1"
    for kind in (kinds.JOBS, kinds.SECRETS, kinds.SERVICES):
        await stand.connection.get(kind, name, namespace=stand.settings.namespace)
