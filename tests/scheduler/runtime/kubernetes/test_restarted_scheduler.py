"""A scheduler that starts again finds its workers in the API server, and nothing else is needed."""

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


async def test_an_end_while_it_was_away_is_told(stand: Stand) -> None:
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
    (told,) = await after.ended(worker)
    assert told.exit_code == 7


async def test_a_good_end_is_told_though_its_pod_was_deleted_while_it_was_away(
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
    (told,) = await after.ended(first)
    assert (told.exit_code, told.by) == (0, EndedBy.ITSELF)
    assert [event for event in after.told if event.worker == second] == await after.started(second)


async def test_a_good_end_is_told_though_its_pod_went_while_the_scheduler_was_opening(
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
    (told,) = await after.ended(worker)
    assert (told.exit_code, told.by) == (0, EndedBy.ITSELF)


async def test_a_worker_without_a_trace_is_lost(stand: Stand) -> None:
    nobody = WorkerId("x" * 26, 1, 0)
    after = await stand.restarted([nobody])
    (told,) = await after.ended(nobody)
    assert told.by is EndedBy.LOST


async def test_pods_that_nobody_expects_are_ended(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    after = await stand.restarted([])
    await after.until_pods(worker.job, 0)
    assert after.told == []


async def test_what_a_stopped_leader_still_made_when_it_went_on_is_deleted(stand: Stand) -> None:
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
    assert after.told == []


async def test_a_gang_whose_gates_were_still_closed_is_opened(stand: Stand) -> None:
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


async def test_what_was_half_made_is_given_back_and_never_ran(stand: Stand) -> None:
    (launch,) = launches([(stand.nodes[0], (0,))])
    stand.hinder_opening()
    await stand.start([launch])
    job = launch.worker.job
    await stand.until_pods(job, 1)
    await stand.connection.delete(kinds.SECRETS, f"bp-{job}-1", namespace=stand.settings.namespace)
    after = await stand.restarted([launch.worker])
    (told,) = await after.ended(launch.worker)
    assert told.by is EndedBy.LOST


async def half_made(stand: Stand, pods: int = 1) -> Launch:
    """Start a worker whose Secret is not made, as when its leader is killed before; return it."""
    await stand.close()  # it would delete what it has not begun
    (launch,) = launches([(stand.nodes[0], (0,))])
    body = manifests.job(launch, [manifests.placement(*_place(launch))], stand.settings, 1)
    await stand.connection.create(kinds.JOBS, body, namespace=stand.settings.namespace)
    await stand.until_pods(launch.worker.job, pods)
    return launch


def _place(launch: Launch) -> tuple[str, tuple[str, ...]]:
    return launch.nodes[0], tuple(launch.gpus)


async def test_no_gate_is_opened_before_it_is_known_that_all_was_made(
    stand: Stand, plane: ControlPlane
) -> None:
    launch = await half_made(stand)
    stand.answer_late(kinds.SECRETS, 1.0)
    with Record(plane.access, stand.settings.namespace) as record:
        after = await stand.restarted([launch.worker])
        (told,) = await after.ended(launch.worker)
        begun = record.complete()
    assert (told.by, begun) == (EndedBy.LOST, [])
    assert after.told == [told]


async def test_what_was_half_made_is_given_back_before_its_pods_have_come(
    stand: Stand, plane: ControlPlane
) -> None:
    plane.processes.freeze("kube-controller-manager")
    try:
        launch = await half_made(stand, pods=0)
        with Record(plane.access, stand.settings.namespace) as record:
            after = await stand.restarted([launch.worker])
            (told,) = await after.ended(launch.worker)
            plane.processes.thaw("kube-controller-manager")
            await after.until_pods(launch.worker.job, 0)
            begun = record.complete()
    finally:
        plane.processes.thaw("kube-controller-manager")
    assert (told.by, begun) == (EndedBy.LOST, [])


async def test_two_leaders_start_an_attempt_once(stand: Stand) -> None:
    gang = launches([(stand.nodes[0], (0,)), (stand.nodes[1], (0,))])
    workers = [launch.worker for launch in gang]
    other = await stand.beside()
    await stand.start(gang)
    await other.start(gang)
    await stand.started(*workers)
    await other.started(*workers)
    assert len(await stand.pods(workers[0].job)) == 2


async def test_a_gang_is_made_although_the_api_server_goes_away_in_between(stand: Stand) -> None:
    gang = launches([(stand.nodes[0], (0,)), (stand.nodes[1], (0,))])
    stand.interrupt_once(kinds.SECRETS)
    await stand.run(gang)
    name = f"bp-{gang[0].worker.job}-1"
    for kind in (kinds.JOBS, kinds.SECRETS, kinds.SERVICES):
        await stand.connection.get(kind, name, namespace=stand.settings.namespace)
