"""A silent node becomes unready soon, and ready again when it reports."""

from __future__ import annotations

import pytest

from benchpool_cluster import device_plugin, kwok_nodes, pods, sharing

pytestmark = pytest.mark.kubernetes
SHOW = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
NODE = f"{kwok_nodes.NODES}/node-2"


def test_frozen_kubelet_makes_node_unready(cluster_use: sharing.Use) -> None:
    cluster = cluster_use.cluster
    with cluster_use.alone() as ours:
        if not ours:
            pytest.skip("somebody else uses the cluster now")
        cluster.processes.freeze("kubelet-2")
        try:
            cluster.access.wait(NODE, lambda node: not kwok_nodes.is_ready(node), 40)
        finally:
            cluster.processes.thaw("kubelet-2")
        cluster.access.wait(NODE, kwok_nodes.is_ready, 40)


def test_restarted_kubelet_allocates_gpus(cluster_use: sharing.Use) -> None:
    cluster = cluster_use.cluster
    with cluster_use.alone() as ours:
        if not ours:
            pytest.skip("somebody else uses the cluster now")
        cluster.processes.kill("kubelet-2")
        cluster.processes.restart("kubelet-2")
        with pods.space(cluster) as space:
            pod = pods.python_pod("next", SHOW, gpus=1, node="node-2")
            space.run(pod, "Succeeded")
            assert space.logs("next").strip() in device_plugin.uuids("node-2")
