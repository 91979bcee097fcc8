"""Two real nodes allocate their simulated GPUs by UUID."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchpool_cluster import device_plugin, pods
from benchpool_cluster.cluster import Cluster

pytestmark = pytest.mark.kubernetes
SHOW = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES', 'none'))"
NODES = "/api/v1/nodes"


@pytest.fixture
def space(cluster: Cluster) -> Iterator[pods.Space]:
    """Yield a namespace for this test."""
    with pods.space(cluster) as made:
        yield made


def gpus_of(node: dict[str, dict[str, dict[str, str]]], kind: str) -> str:
    """Return the number of GPUs that a node reports."""
    return node["status"][kind]["nvidia.com/gpu"]


def test_both_nodes_are_ready_with_four_gpus(cluster: Cluster) -> None:
    cluster.wait_ready()
    for name in ("node-1", "node-2"):
        node = cluster.access.get(f"{NODES}/{name}")
        assert gpus_of(node, "capacity") == gpus_of(node, "allocatable") == "4"


def test_pods_see_different_gpus_of_their_node_by_uuid(space: pods.Space) -> None:
    for name in ("first", "second"):
        space.run(pods.python_pod(name, SHOW, gpus=2, node="node-2"), "Succeeded")
    space.create("pods", pods.python_pod("holder", "import time; time.sleep(60)", gpus=2))
    seen = space.logs("first").strip().split(",")
    assert len(seen) == 2
    assert set(seen) < set(device_plugin.uuids("node-2"))


def test_concurrent_pods_hold_different_gpus(space: pods.Space) -> None:
    hold = f"{SHOW}; import time; time.sleep(60)"
    for name in ("left", "right"):
        space.run(pods.python_pod(name, hold, gpus=2, node="node-1"))
    shown = [space.logs(name).strip().split(",") for name in ("left", "right")]
    assert sorted(shown[0] + shown[1]) == sorted(device_plugin.uuids("node-1"))


def test_pod_without_gpu_sees_none(space: pods.Space) -> None:
    space.run(pods.python_pod("plain", SHOW), "Succeeded")
    assert space.logs("plain") == "none\n"


def test_unhealthy_gpu_is_not_allocatable(cluster: Cluster) -> None:
    node = cluster.node("node-1")
    healthy = dict.fromkeys(device_plugin.uuids("node-1"), "Healthy")
    node.set_gpus(healthy | {device_plugin.uuids("node-1")[0]: "Unhealthy"})
    path = f"{NODES}/node-1"
    seen = cluster.access.wait(path, lambda now: gpus_of(now, "allocatable") == "3")
    assert gpus_of(seen, "capacity") == "4"
    node.set_gpus(healthy)
    cluster.access.wait(path, lambda now: gpus_of(now, "allocatable") == "4")
