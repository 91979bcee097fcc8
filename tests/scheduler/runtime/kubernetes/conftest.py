"""Fixtures: a runtime on a real API server with nodes simulated by kwok."""

from __future__ import annotations

import hashlib
import itertools
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from benchpool_cluster import addresses, images, kwok_nodes, pods
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.control_plane import ControlPlane, free_port
from benchpool_cluster.fixtures import cluster as cluster
from benchpool_cluster.fixtures import control_plane as control_plane
from benchpool_scheduler.kube import connect, kinds
from benchpool_scheduler.runtime.kubernetes import agent_zipapp
from benchpool_support.pods import Stand, settings_for
from benchpool_support.real_pods import RealStand, url

NUMBERS = itertools.count(1)
STAGES = Path(__file__).with_name("kwok_stages.yaml")


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Return the control plane; pods of Jobs run until a test ends them."""
    control_plane.processes.kill("kwok")
    kwok_nodes.start(control_plane.processes, control_plane.access.kubeconfig, STAGES)
    yield control_plane
    control_plane.processes.kill("kwok")
    kwok_nodes.start(control_plane.processes, control_plane.access.kubeconfig)


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[tuple[str, ...]]:
    """Yield the names of three nodes of four GPUs each."""
    number = next(NUMBERS)
    names = tuple(f"n{number}-{letter}" for letter in "abc")
    for name in names:
        kwok_nodes.add(plane.access, name, gpus=4)
    for name in names:
        kwok_nodes.wait_ready(plane.access, name)
    yield names
    for name in names:
        kwok_nodes.remove(plane.access, name)


@pytest.fixture
def space(plane: ControlPlane) -> Iterator[str]:
    """Yield a namespace that enforces the restricted pod security standard."""
    name = f"jobs-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    plane.access.create(
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
    )
    yield name
    plane.access.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
async def stand(
    plane: ControlPlane,
    nodes: tuple[str, ...],
    space: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Stand]:
    """Yield a runtime that expects no workers; the fixture parameter changes its settings."""
    more = getattr(request, "param", {})
    async with connect(plane.access.kubeconfig) as connection:
        stand = Stand(connection, settings_for(space, **more), tmp_path, nodes)
        await stand.open()
        try:
            yield stand
        finally:
            await stand.close()


# --------------------------------------------------------------------------- real nodes

DOCKERFILE = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
COPY agent.pyz /opt/benchpool/agent.pyz
"""


@pytest.fixture(scope="session")
def agent_image(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an image with the agent of this tree, loaded into both nodes; jobs run in it too."""
    folder = tmp_path_factory.mktemp("agent")
    agent_zipapp.write(folder / "agent.pyz")
    content = hashlib.sha256((folder / "agent.pyz").read_bytes()).hexdigest()[:12]
    (folder / "Dockerfile").write_text(DOCKERFILE)
    name = f"benchpool.test/agent:{content}"
    cluster.load_image(images.make(folder / "Dockerfile", name, context=folder), name)
    return name


# PyTorch of Debian 12 predates its Python version, in which iterating a flag skips the zero member.
LAUNCHERS_DOCKERFILE = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update -q && \\
    apt-get install -y -q --no-install-recommends openmpi-bin python3-torch && \\
    rm -rf /usr/share/doc /usr/share/proj /var/cache/apt/archives/*.deb /var/lib/apt/lists/* && \\
    sed -i 's/for s in Std:/for s in (Std.NONE, *Std):/' \\
        /usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py
"""


@pytest.fixture(scope="session")
def launchers_image(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an image with Open MPI and PyTorch."""
    folder = tmp_path_factory.mktemp("launchers")
    (folder / "Dockerfile").write_text(LAUNCHERS_DOCKERFILE)
    name = "benchpool.test/launchers:1"
    cluster.load_image(images.make(folder / "Dockerfile", name, context=folder), name)
    return name


@pytest.fixture
def real_space(cluster: Cluster) -> Iterator[pods.Space]:
    """Yield a namespace on the cluster with real nodes."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    with pods.space(cluster, labels) as made:
        yield made


@pytest.fixture
async def real(
    cluster: Cluster, agent_image: str, real_space: pods.Space, tmp_path: Path
) -> AsyncIterator[RealStand]:
    """Yield a runtime on the two real nodes that serves their agents."""
    at = (addresses.CONTROL_PLANE, free_port(addresses.CONTROL_PLANE))
    settings = settings_for(
        real_space.name, image=agent_image, agent_image=agent_image, agent_url=url(at)
    )
    async with connect(cluster.access.kubeconfig) as connection:
        stand = RealStand(connection, settings, tmp_path, at)
        stand.serve()
        await stand.open()
        try:
            yield stand
        finally:
            await stand.hush()
            await stand.close()
            await connection.delete_all(
                kinds.JOBS, namespace=real_space.name, labels="benchpool.io/role=worker"
            )
