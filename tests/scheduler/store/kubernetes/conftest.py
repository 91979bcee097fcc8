"""Fixtures: a real API server with the custom resource definitions, and stores per namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from benchpool_cluster.access import Access
from benchpool_cluster.fixtures import access as access
from benchpool_cluster.fixtures import control_plane as control_plane
from benchpool_scheduler.kube import Connection, connect
from benchpool_scheduler.store.kubernetes import FsspecObjects, KubernetesStore
from benchpool_support import kubernetes

MakeStore = Callable[..., KubernetesStore]


@pytest.fixture(scope="session")
def defined(access: Access) -> Access:
    """Return an API server with the custom resource definitions."""

    async def define() -> None:
        async with connect(access.kubeconfig) as connection:
            await kubernetes.define(connection)

    asyncio.run(define())
    return access


@pytest.fixture
async def connection(defined: Access) -> AsyncIterator[Connection]:
    """Yield a connection as administrator."""
    async with connect(defined.kubeconfig) as found:
        yield found


@pytest.fixture
async def namespace(connection: Connection) -> AsyncIterator[str]:
    """Yield a namespace for one test."""
    async with kubernetes.namespace(connection) as name:
        yield name


@pytest.fixture
async def make_store(
    connection: Connection, namespace: str, tmp_path: Path
) -> AsyncIterator[MakeStore]:
    """Yield a function that makes stores of the namespace; open stores are closed at the end."""
    made: list[KubernetesStore] = []

    def make(**settings: object) -> KubernetesStore:
        store = KubernetesStore(
            settings.pop("connection", connection),  # type: ignore[arg-type]
            namespace,
            FsspecObjects(f"file://{tmp_path}/objects"),
            **settings,  # type: ignore[arg-type]
        )
        made.append(store)
        return store

    yield make
    for store in made:
        await store.close()
