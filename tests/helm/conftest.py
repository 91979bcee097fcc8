"""Fixtures of a cluster with the chart's rules installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchpool_cluster import chart, kwok_nodes
from benchpool_cluster.chart import Caller, Site
from benchpool_cluster.control_plane import ControlPlane, Timing
from benchpool_cluster.fixtures import cluster as cluster
from benchpool_cluster.processes import Processes


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a private control plane with the chart's policies and two nodes.

    The policies do not apply to the tests of other modules.
    """
    folder = tmp_path_factory.mktemp("ruled-cluster")
    # kwok reports its nodes rarely; no test here concerns lost nodes.
    patient = Timing(node_grace=900, toleration=900)
    plane = ControlPlane(folder, Processes(folder / "run", tied=True), timing=patient)
    try:
        plane.start()
        kwok_nodes.start(plane.processes, plane.access.kubeconfig)
        for name in ("gpu-1", "gpu-2"):
            kwok_nodes.add(plane.access, name, gpus=4)
            kwok_nodes.wait_ready(plane.access, name)
        yield chart.put_rules(plane.access, chart.render())
    finally:
        plane.processes.kill_all()


@pytest.fixture(scope="module")
def mallory(site: Site) -> Caller:
    """Return a caller with all RBAC rights in the work namespace."""
    return site.person("mallory", "cluster-admin")


@pytest.fixture(scope="module")
def pods(site: Site) -> str:
    """Return the API path of the pods in the work namespace."""
    return f"/api/v1/namespaces/{site.workspace}/pods"
