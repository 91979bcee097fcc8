"""The whole service as processes, on a real API server with nodes simulated by kwok."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.access import Access
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.fixtures import control_plane as control_plane
from benchpool_scheduler.kube import connect
from benchpool_scheduler.resources.pools import NODE_POOLS, POOL_SETTINGS, PROJECTS
from benchpool_support import kubernetes
from benchpool_support.replicas import Site, small_hub

NUMBERS = itertools.count(1)
STAGES = Path(__file__).parents[1] / "scheduler/runtime/kubernetes/kwok_stages.yaml"
RACKS = {"a": "east", "b": "east", "c": "west"}
CONFIGURATION = """\
version: 1
projects:
  - {name: susan, quota: 4, members: [susan]}
  - {name: joe, quota: 4, members: [joe]}
policy: {grace_s: 2}
topology: [example.org/rack]
"""


@pytest.fixture(scope="session")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """Return the control plane with benchpool's definitions; pods run until a test ends them."""
    control_plane.processes.kill("kwok")
    kwok_nodes.start(control_plane.processes, control_plane.access.kubeconfig, STAGES)

    async def define() -> None:
        async with connect(control_plane.access.kubeconfig) as connection:
            await kubernetes.define(connection)

    asyncio.run(define())
    return control_plane


@pytest.fixture
def access(plane: ControlPlane) -> Access:
    """Return the administrator's access."""
    return plane.access


@pytest.fixture
def nodes(access: Access) -> Iterator[tuple[str, ...]]:
    """Yield three nodes of four GPUs in two racks, for one test only."""
    number = next(NUMBERS)
    names = {letter: f"s{number}-{letter}" for letter in RACKS}
    for letter, name in names.items():
        kwok_nodes.add(access, name, gpus=4, labels={"example.org/rack": RACKS[letter]})
    for name in names.values():
        kwok_nodes.wait_ready(access, name)
    yield tuple(names.values())
    for name in names.values():
        kwok_nodes.remove(access, name)


@pytest.fixture
def site(access: Access, nodes: tuple[str, ...], tmp_path: Path) -> Iterator[Site]:
    """Yield an installation without replicas, in its own namespace."""
    name = f"bench-{secrets.token_hex(4)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    access.create("/api/v1/namespaces", namespace)
    with small_hub() as hub:
        site = Site(hub, access.kubeconfig, name, tmp_path, CONFIGURATION)
        try:
            yield site
        finally:
            site.close()
            access.delete(f"/api/v1/namespaces/{name}")
            asyncio.run(_forget_settings(access))


async def _forget_settings(access: Access) -> None:
    async with connect(access.kubeconfig) as connection:
        await kubernetes.empty(connection, *(r.kind for r in (PROJECTS, NODE_POOLS, POOL_SETTINGS)))
