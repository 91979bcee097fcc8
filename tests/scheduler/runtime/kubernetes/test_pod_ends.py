"""Worker ends as the API server reports them."""

from __future__ import annotations

import json

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_support.pods import Stand, launches

pytestmark = pytest.mark.kubernetes


async def end(stand: Stand, worker: WorkerId, code: int, **fields: str) -> None:
    """End the pod of a worker with an exit code."""
    pod = (await stand.pods(worker.job))[worker.worker]
    notes = {"tests/exit": str(code)} | {f"tests/{key}": text for key, text in fields.items()}
    await stand.connection.patch(
        kinds.PODS,
        pod["metadata"]["name"],
        {"metadata": {"annotations": notes}},
        namespace=stand.settings.namespace,
    )


async def test_exit_code_is_taken_from_container(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    await end(stand, worker, 3)
    (ended,) = await stand.ended(worker)
    assert (ended.exit_code, ended.by) == (3, EndedBy.ITSELF)


async def test_agent_termination_message_overrides_pod_status(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    words = {"exit_code": None, "by": "time-limit", "text": "it took too long", "ended": 17.0}
    await end(stand, worker, 1, message=json.dumps(words))
    (ended,) = await stand.ended(worker)
    assert (ended.exit_code, ended.by, ended.at) == (None, EndedBy.TIME_LIMIT, 17.0)
    assert ended.text == "it took too long"


async def test_out_of_memory_end_is_reported(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    await end(stand, worker, 137, reason="OOMKilled")
    (ended,) = await stand.ended(worker)
    assert ended.by is EndedBy.OUT_OF_MEMORY
    assert "memory" in str(ended.text)


async def test_failed_worker_leaves_gang_members_running(stand: Stand) -> None:
    a, b, _ = stand.nodes
    first, second = await stand.run(launches([(a, (0,)), (b, (0,))]))
    await end(stand, first, 1)
    await stand.ended(first)
    pods = await stand.until_pods(first.job, 2)
    assert [pod["status"]["phase"] for pod in pods] == ["Failed", "Running"]
    await end(stand, second, 0)
    (ended,) = await stand.ended(second)
    assert ended.exit_code == 0


async def test_pod_deleted_externally_is_lost(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    (pod,) = await stand.pods(worker.job)
    await stand.connection.delete(
        kinds.PODS, pod["metadata"]["name"], namespace=stand.settings.namespace
    )
    (ended,) = await stand.ended(worker)
    assert (ended.by, ended.exit_code) == (EndedBy.LOST, None)
    assert "its pod was deleted" in str(ended.text)


async def test_pods_of_removed_node_are_lost(stand: Stand, plane: ControlPlane) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    kwok_nodes.remove(plane.access, stand.nodes[0])
    (ended,) = await stand.ended(worker)
    assert ended.by is EndedBy.LOST


@pytest.mark.parametrize("stand", [{"keep_ended_s": 0.0}], indirect=True)
async def test_objects_of_ended_attempt_are_deleted(stand: Stand) -> None:
    (worker,) = await stand.run(launches([(stand.nodes[0], (0,))]))
    await end(stand, worker, 0)
    await stand.ended(worker)
    await stand.until_pods(worker.job, 0)
    listed = await stand.connection.list(kinds.JOBS, namespace=stand.settings.namespace)
    assert listed.items == ()
