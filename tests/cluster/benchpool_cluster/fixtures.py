"""Fixtures: a private control plane, or the cluster with real nodes.

Import the names into a ``conftest.py``. With ``BENCHPOOL_TEST_KUBECONFIG`` nothing is started, and
``access`` is that of the file.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchpool_cluster import kwok_nodes, sharing
from benchpool_cluster.access import Access, from_kubeconfig
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.control_plane import ControlPlane, Timing
from benchpool_cluster.processes import Processes

GIVEN = "BENCHPOOL_TEST_KUBECONFIG"


PLANE = pytest.StashKey[ControlPlane]()
USE = pytest.StashKey[sharing.Use]()


# Several folders of tests import these fixtures, and pytest sees a separate definition in each.
# Their values are shared by the whole run, so they end with the run and not with a definition.
@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    """Return a control plane with kwok on the loopback, for this test run only."""
    _only_ours()
    stash = request.config.stash
    if PLANE not in stash:
        folder = tmp_path_factory.mktemp("control-plane")
        timing = Timing(node_grace=45)  # kwok reports for all nodes, and late on a busy machine
        plane = ControlPlane(folder, Processes(folder / "run", tied=True), timing=timing)
        request.config.add_cleanup(plane.processes.kill_all)
        plane.start()
        kwok_nodes.start(plane.processes, plane.access.kubeconfig)
        stash[PLANE] = plane
    return stash[PLANE]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Return the cluster with two real nodes.

    A running cluster is used; otherwise a new cluster starts and ends with its last user.
    """
    _only_ours()
    return _use(request.config).cluster


@pytest.fixture(scope="session")
def cluster_use(request: pytest.FixtureRequest) -> sharing.Use:
    """Return this run's use of that cluster, for tests that stop all of it."""
    _only_ours()
    return _use(request.config)


def _use(config: pytest.Config) -> sharing.Use:
    if USE not in config.stash:
        config.stash[USE] = sharing.join()
        config.add_cleanup(config.stash[USE].leave)
    return config.stash[USE]


@pytest.fixture(scope="session")
def access(request: pytest.FixtureRequest) -> Access:
    """Return the administrator's access to the given cluster, or to a private control plane."""
    given = os.environ.get(GIVEN)
    if given:
        return from_kubeconfig(Path(given))
    plane: ControlPlane = request.getfixturevalue("control_plane")
    return plane.access


def _only_ours() -> None:
    if os.environ.get(GIVEN):
        pytest.skip(f"takes a cluster of our own, and {GIVEN} gives another")
