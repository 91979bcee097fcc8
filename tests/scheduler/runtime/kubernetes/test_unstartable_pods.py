"""Pods that cannot start end with a reason; a node that rejects several jobs is avoided."""

from __future__ import annotations

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract.kubernetes import attempt_name
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.kubernetes import missing_pods
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptState
from benchpool_scheduler.runtime.kubernetes.node_backoff import SEVERAL
from benchpool_scheduler.runtime.kubernetes.pod_status import Trouble
from benchpool_support.pods import Stand, launches, pause
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes

REPAIR = {"key": "repair", "value": "yes", "effect": "NoSchedule"}


def taint(plane: ControlPlane, node: str, *taints: dict[str, str]) -> None:
    plane.access.patch(f"{kwok_nodes.NODES}/{node}", {"spec": {"taints": list(taints)}})


async def test_single_rejected_pod_does_not_block_node(stand: Stand, plane: ControlPlane) -> None:
    a, b, _ = stand.nodes
    taint(plane, a, REPAIR)
    bad, good = launches([(a, (0,)), (b, (0,))])
    await stand.start([bad, good])
    (end,) = await stand.ended(bad.worker)
    assert end.by is EndedBy.NOT_TAKEN
    assert f"{a} cannot run it: {a} has the taint repair=yes:NoSchedule" in str(end.text)
    await stand.runtime.stop(good.worker, pause(1.0))
    await stand.ended(good.worker)
    taint(plane, a)
    await stand.until_devices("u" * 12)
    await stand.run(launches([(a, (0,))]))


async def test_node_rejecting_several_jobs_is_blocked_temporarily(
    stand: Stand, plane: ControlPlane
) -> None:
    a, *_ = stand.nodes
    taint(plane, a, REPAIR)
    jobs = [launches([(a, (gpu,))])[0] for gpu in range(SEVERAL)]
    await stand.start(jobs)
    ended = await stand.ended(*(launch.worker for launch in jobs))
    assert {end.by for end in ended} == {EndedBy.NOT_TAKEN}
    taint(plane, a)
    await until_async(lambda: _is_ready(stand, a))
    devices = await stand.until_devices("bbbb" + "uuuuuuuu")
    assert "cannot run it" in str(devices[0].note)


async def _is_ready(stand: Stand, name: str) -> bool:
    return next(node.ready for node in await stand.runtime.nodes() if node.name == name)


async def test_exceeded_namespace_quota_is_reported(stand: Stand, plane: ControlPlane) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    space = f"/api/v1/namespaces/{stand.settings.namespace}"
    plane.access.create(f"{space}/resourcequotas", quota)
    plane.access.wait(f"{space}/resourcequotas/none", lambda it: "hard" in it.get("status", {}))
    (launch,) = launches([(stand.nodes[0], (0,))])
    await stand.start([launch])
    (end,) = await stand.ended(launch.worker)
    assert end.by is EndedBy.NO_ROOM
    space_name = stand.settings.namespace
    assert end.text == (
        f"quota none of namespace {space_name} has no room: pods 0 of 0 used, 1 requested"
    )
    # The Job is deleted, so that freed quota does not create an orphaned pod behind the gate.
    name = attempt_name(launch.worker.job, launch.worker.attempt)

    async def gone() -> bool:
        return (
            plane.access.find(f"/apis/batch/v1{space.removeprefix('/api/v1')}/jobs/{name}") is None
        )

    await until_async(gone)


@pytest.mark.parametrize("kept", ["count/jobs.batch", "count/secrets", "count/services"])
async def test_attempt_exceeding_object_quota_leaves_no_objects(
    stand: Stand, plane: ControlPlane, kept: str
) -> None:
    space = stand.settings.namespace
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {kept: "0"}}}
    path = f"/api/v1/namespaces/{space}/resourcequotas"
    plane.access.create(path, {"apiVersion": "v1", "kind": "ResourceQuota"} | quota)
    plane.access.wait(f"{path}/few", lambda it: "hard" in it.get("status", {}))
    a, b, _ = stand.nodes
    gang = launches([(a, (0,)), (b, (0,))])
    await stand.start(gang)
    ends = await stand.ended(*(launch.worker for launch in gang))
    assert {end.by for end in ends} == {EndedBy.NO_ROOM}
    assert f"quota few of namespace {space} has no room: {kept} 0 of 0 used" in str(ends[0].text)
    name = attempt_name(gang[0].worker.job, gang[0].worker.attempt)

    async def gone() -> bool:
        return plane.access.find(f"/apis/batch/v1/namespaces/{space}/jobs/{name}") is None

    await until_async(gone)


async def test_limit_range_violation_waits_for_room(stand: Stand, plane: ControlPlane) -> None:
    space = stand.settings.namespace
    small = {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}}
    plane.access.create(f"/api/v1/namespaces/{space}/limitranges", limits | {"spec": small})
    (launch,) = launches([(stand.nodes[0], (0,))])
    await stand.start([launch])
    (end,) = await stand.ended(launch.worker)
    assert end.by is EndedBy.NO_ROOM
    assert f"a limit range of namespace {space} does not allow it: maximum memory" in str(end.text)


async def test_gang_stopped_before_pods_run_ends(stand: Stand) -> None:
    a, b, _ = stand.nodes
    gang = launches([(a, (0,)), (b, (0,))])
    stand.hinder_opening()
    await stand.start(gang)
    await stand.until_pods(gang[0].worker.job, 2)
    for launch in gang:
        await stand.runtime.stop(launch.worker, pause())
    ended = await stand.ended(*(launch.worker for launch in gang))
    assert {end.by for end in ended} == {EndedBy.NOTICE}


async def test_gang_stopped_before_job_creation_is_confirmed_ends(
    stand: Stand,
) -> None:
    a, b, _ = stand.nodes
    gang = launches([(a, (0,)), (b, (0,))])
    stand.hinder_opening()
    answered = stand.keep_back_answers(kinds.JOBS)
    await stand.start(gang)
    for launch in gang:
        await stand.until_pod_of(launch.worker)
        await stand.runtime.stop(launch.worker, pause())
    answered.set()
    ended = await stand.ended(*(launch.worker for launch in gang))
    assert {end.by for end in ended} == {EndedBy.NOTICE}


async def test_job_ignored_by_controller_times_out(stand: Stand) -> None:
    attempt = AttemptState("01hzxk8qj9v4e2c5t7m3n6p8rb", 1, 1_000.0, uid="u", size=1, wanted=1)
    container = {"name": "worker", "image": "any"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {"metadata": {"name": attempt.name}, "spec": {"suspend": True, "template": template}}
    await stand.connection.create(kinds.JOBS, body, namespace=stand.settings.namespace)

    async def after(seconds: float) -> Trouble | None:
        return await missing_pods.why_missing(
            stand.connection, stand.settings, attempt, attempt.since + seconds
        )

    assert await after(missing_pods.PATIENCE_S + 1) is None
    trouble = await after(missing_pods.IDLE_PATIENCE_S + 1)
    assert trouble is not None
    assert trouble.text == "the cluster did not start its Job within 600 s"
