"""What cannot begin is given back with a reason, and its node is left alone for a while."""

from __future__ import annotations

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.testing.pods import Stand, launches, pause

pytestmark = pytest.mark.kubernetes


async def test_a_pod_that_its_node_cannot_take_is_given_back(
    stand: Stand, plane: ControlPlane
) -> None:
    a, b, _ = stand.nodes
    taints = [{"key": "repair", "value": "yes", "effect": "NoSchedule"}]
    plane.access.patch(f"{kwok_nodes.NODES}/{a}", {"spec": {"taints": taints}})
    bad, good = launches([(a, (0,)), (b, (0,))])
    await stand.start([bad, good])
    (told,) = await stand.ended(bad.worker)
    assert told.by is EndedBy.LOST
    assert "repair" in str(told.text)
    await stand.runtime.stop(good.worker, pause(1.0))
    await stand.ended(good.worker)
    plane.access.patch(f"{kwok_nodes.NODES}/{a}", {"spec": {"taints": []}})
    devices = await stand.until_devices("bbbb" + "uuuuuuuu")
    await stand.until(lambda: _is_ready(stand, a))
    assert "cannot take it" in str((await stand.devices())[0].note)
    assert len(devices) == 12


async def _is_ready(stand: Stand, name: str) -> bool:
    return next(node.ready for node in await stand.runtime.nodes() if node.name == name)


async def test_a_quota_of_the_namespace_is_told_in_its_own_words(
    stand: Stand, plane: ControlPlane
) -> None:
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
    (told,) = await stand.ended(launch.worker)
    assert told.by is EndedBy.LOST
    assert "exceeded quota" in str(told.text)


async def test_a_gang_that_is_stopped_before_its_pods_run_ends_at_once(stand: Stand) -> None:
    a, b, _ = stand.nodes
    gang = launches([(a, (0,)), (b, (0,))])
    stand.hinder_opening()
    await stand.start(gang)
    await stand.until_pods(gang[0].worker.job, 2)
    for launch in gang:
        await stand.runtime.stop(launch.worker, pause())
    ended = await stand.ended(*(launch.worker for launch in gang))
    assert {end.by for end in ended} == {EndedBy.NOTICE}
