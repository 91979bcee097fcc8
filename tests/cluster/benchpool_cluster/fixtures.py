"""What tests take: a control plane of their own, or the cluster with real nodes.

Import the names into a ``conftest.py``. With ``BENCHPOOL_TEST_KUBECONFIG`` nothing is started at
all, and ``access`` is that of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_cluster import cluster as clusters
from benchpool_cluster import kwok_nodes
from benchpool_cluster.access import Access, from_kubeconfig
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.processes import Processes

GIVEN = "BENCHPOOL_TEST_KUBECONFIG"


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with kwok on the loopback, for this run of tests alone."""
    _only_ours()
    folder = tmp_path_factory.mktemp("control-plane")
    plane = ControlPlane(folder, Processes(folder / "run", tied=True))
    try:
        plane.start()
        kwok_nodes.start(plane.processes, plane.access.kubeconfig)
        yield plane
    finally:
        for name in plane.processes.names():
            plane.processes.kill(name)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster with two real nodes: the one that runs, else one for this run of tests."""
    _only_ours()
    running = clusters.find()
    if running:
        yield running
        return
    made = clusters.up(tied=True)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def access(request: pytest.FixtureRequest) -> Access:
    """The administrator's access to the given cluster, else to a control plane of our own."""
    given = os.environ.get(GIVEN)
    if given:
        return from_kubeconfig(Path(given))
    plane: ControlPlane = request.getfixturevalue("control_plane")
    return plane.access


def _only_ours() -> None:
    if os.environ.get(GIVEN):
        pytest.skip(f"takes a cluster of our own, and {GIVEN} gives another")
