"""GPUs as slots of nodes: their holders, and which slots can be assigned (R1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import NodeFacts
from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView
from benchpool_support.pods import KWOK, Stand, launches, random_name
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes


async def foreign(stand: Stand, node: str, gpus: int) -> str:
    """Run a pod that benchpool did not create."""
    name = random_name("foreign")
    secure = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    asked = {"nvidia.com/gpu": str(gpus), "cpu": "4"}
    container = {
        "name": "main",
        "image": "any",
        "securityContext": secure,
        "resources": {"limits": asked},
    }
    pod = {
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [KWOK],
        },
    }
    await stand.connection.create(kinds.PODS, pod, namespace=stand.settings.namespace)
    return name


async def facts_of(stand: Stand, name: str) -> NodeFacts:
    """Return the facts of a node."""
    return next(node for node in await stand.runtime.nodes() if node.name == name)


async def test_foreign_pods_occupy_free_slots(stand: Stand) -> None:
    a, *_ = stand.nodes
    await stand.run(launches([(a, (2, 3))]))
    name = await foreign(stand, a, 1)
    await stand.until_devices("ufuu" + "uuuuuuuu")
    assert (await facts_of(stand, a)).cpus == 60.0
    await stand.connection.delete(kinds.PODS, name, namespace=stand.settings.namespace)
    await stand.until_devices("uuuu" + "uuuuuuuu")


async def test_gpus_of_device_claims_are_foreign(stand: Stand) -> None:
    a, *_ = stand.nodes
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}
    claim = {
        "metadata": {"name": random_name("claim")},
        "spec": {"devices": {"requests": [request]}},
    }
    space = stand.settings.namespace
    made = await stand.connection.create(kinds.DEVICE_CLAIMS, claim, namespace=space)
    name = made["metadata"]["name"]
    shared = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": a}
    only = {"key": "metadata.name", "operator": "In", "values": [a]}
    made["status"] = {
        "allocation": {
            "devices": {"results": [{**shared, "device": f"gpu-{index}"} for index in (0, 1)]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
        }
    }
    await stand.connection.replace(
        kinds.DEVICE_CLAIMS, name, made, namespace=space, subresource="status"
    )
    await stand.until_devices("uuff" + "uuuuuuuu")
    await stand.connection.delete(kinds.DEVICE_CLAIMS, name, namespace=space)
    await stand.until_devices("u" * 12)


async def test_cluster_without_device_claims_is_watched(stand: Stand) -> None:
    kind = kinds.DEVICE_CLAIMS
    kinds.DEVICE_CLAIMS = replace(kind, version="v0")
    try:
        other = await stand.beside()
    finally:
        kinds.DEVICE_CLAIMS = kind
    await other.until_devices("u" * 12)


async def test_cordoned_or_tainted_node_is_not_ready_with_reason(
    stand: Stand, plane: ControlPlane
) -> None:
    a, b, _ = stand.nodes
    plane.access.patch(f"{kwok_nodes.NODES}/{a}", {"spec": {"unschedulable": True}})
    taints = [{"key": "repair", "value": "yes", "effect": "NoExecute"}]
    plane.access.patch(f"{kwok_nodes.NODES}/{b}", {"spec": {"taints": taints}})
    devices = await stand.until_devices("bbbb" + "bbbb" + "uuuu")
    assert devices[0].note == f"{a} is cordoned"
    assert not (await facts_of(stand, a)).ready
    assert (await facts_of(stand, a)).note == f"{a} is cordoned"
    assert "repair=yes:NoExecute" in str((await facts_of(stand, b)).note)


async def test_node_change_is_reported_and_heartbeat_ignored(
    stand: Stand, plane: ControlPlane
) -> None:
    a, *_ = stand.nodes
    changes = 0

    async def count() -> None:
        nonlocal changes
        while not _seen(stand, a).cordoned:
            await stand.runtime.machines_changed()
            changes += 1

    await stand.devices()
    counting = asyncio.create_task(count())
    path = f"{kwok_nodes.NODES}/{a}"
    for beat in range(30):
        change = {"metadata": {"annotations": {"beat": str(beat)}}}
        await asyncio.to_thread(plane.access.patch, path, change)
        await stand.connection.get(kinds.NODES, a)
    plane.access.patch(path, {"spec": {"unschedulable": True}})
    await asyncio.wait_for(counting, 120)
    assert changes < 15  # changes by other pods on the nodes
    assert {device.note for device in (await stand.devices())[:4]} == {f"{a} is cordoned"}


async def test_lost_device_is_broken_after_delay(stand: Stand, plane: ControlPlane) -> None:
    a, *_ = stand.nodes
    status = f"{kwok_nodes.NODES}/{a}/status"
    plane.access.patch(status, {"status": {"allocatable": {"nvidia.com/gpu": "3"}}})
    devices = await stand.until_devices("uuub" + "uuuuuuuu")
    assert "3 of its 4" in str(devices[3].note)


async def test_short_capacity_dip_is_ignored(stand: Stand, plane: ControlPlane) -> None:
    a, *_ = stand.nodes
    status = f"{kwok_nodes.NODES}/{a}/status"
    gone = {"status": {"allocatable": {"nvidia.com/gpu": "0"}, "capacity": {"nvidia.com/gpu": "0"}}}
    before = await stand.until_devices("u" * 12)
    plane.access.patch(status, gone)
    await until_async(lambda: _has_no_gpus(stand, a))
    assert await stand.devices() == before
    back = {"status": {"allocatable": {"nvidia.com/gpu": "4"}, "capacity": {"nvidia.com/gpu": "4"}}}
    plane.access.patch(status, back)
    assert await stand.devices() == before


async def _has_no_gpus(stand: Stand, name: str) -> bool:
    return not _seen(stand, name).allocatable["nvidia.com/gpu"]


def _seen(stand: Stand, name: str) -> NodeView:
    return next(node for node in stand.runtime.seen_nodes if node.name == name)


async def test_unexpected_own_pods_hold_gpus_until_deleted(
    stand: Stand, plane: ControlPlane
) -> None:
    await stand.run(launches([(stand.nodes[0], (0, 1))]))
    plane.processes.freeze("kwok")  # its pods are deleted, and leave after the thaw
    try:
        after = await stand.restarted([])
        found = await after.devices()
        assert "".join(device.state[0] for device in found) == "uuff" + "uuuuuuuu"
    finally:
        plane.processes.thaw("kwok")
    await after.until_devices("u" * 12)
