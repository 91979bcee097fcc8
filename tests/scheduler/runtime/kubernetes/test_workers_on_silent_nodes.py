"""Workers on a silent node are lost only when the node can no longer run them (F11)."""

from __future__ import annotations

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract.kubernetes import JOB
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import EndedBy, WorkerEnded
from benchpool_support.pods import Stand, launches

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

FENCED = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown"}


async def test_worker_on_silent_node_is_lost_only_after_fencing(
    stand: Stand, plane: ControlPlane
) -> None:
    a, b, _ = stand.nodes
    first, second = await stand.run(launches([(a, (0,)), (b, (0,))]))
    plane.processes.freeze("kwok")
    try:
        # The node controller does the same after a while, except when all nodes are silent, as
        # here.
        await stand.connection.delete_all(
            kinds.PODS, namespace=stand.settings.namespace, labels=f"{JOB}={first.job}"
        )
        await stand.until_devices("b" * 12)
        assert not any(isinstance(event, WorkerEnded) for event in stand.events)
        after = await stand.restarted([first, second])
        await after.started(first, second)
        path = f"{kwok_nodes.NODES}/{a}"
        taints = plane.access.get(path)["spec"]["taints"]
        fenced = [*taints, FENCED | {"effect": "NoExecute"}]
        plane.access.patch(path, {"spec": {"taints": fenced}})
        (end,) = await after.ended(first)
        assert end.by is EndedBy.LOST
        ended = [event for event in after.events if isinstance(event, WorkerEnded)]
        assert [event.worker for event in ended] == [first]
    finally:
        plane.processes.thaw("kwok")
    (end,) = await after.ended(second)
    assert end.by is EndedBy.LOST
