"""A cluster with the chart's rules on it."""

from __future__ import annotations

import pytest

from benchpool_cluster import chart, kwok_nodes
from benchpool_cluster.chart import Site
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.fixtures import access as access
from benchpool_cluster.fixtures import cluster as cluster
from benchpool_cluster.fixtures import control_plane as control_plane


@pytest.fixture(scope="session")
def site(control_plane: ControlPlane) -> Site:
    """A control plane with the chart's namespaces, accounts, roles and policies, and two nodes."""
    for name in ("gpu-1", "gpu-2"):
        kwok_nodes.add(control_plane.access, name, gpus=4)
        kwok_nodes.wait_ready(control_plane.access, name)
    return chart.put_rules(control_plane.access, chart.render())
