"""What tests take: a control plane of their own, or the cluster with real nodes.

Import the names into a ``conftest.py``. With ``BENCHPOOL_TEST_KUBECONFIG`` nothing is started at
all, and both are the cluster of that file.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.processes import Processes


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with kwok on the loopback, for this run of tests alone."""
    folder = tmp_path_factory.mktemp("control-plane")
    plane = ControlPlane(folder, Processes(folder / "run", tied=True))
    try:
        plane.start()
        kwok_nodes.start(plane.processes, plane.access.kubeconfig)
        yield plane
    finally:
        for name in plane.processes.names():
            plane.processes.kill(name)
