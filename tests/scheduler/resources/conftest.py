"""A real API server with benchpool's definitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from benchpool_cluster.access import Access
from benchpool_cluster.fixtures import access as access
from benchpool_cluster.fixtures import control_plane as control_plane
from benchpool_scheduler.kube import Connection, connect
from benchpool_support import kubernetes


@pytest.fixture(scope="session")
def defined(access: Access) -> Access:
    """API server with benchpool's definitions."""

    async def define() -> None:
        async with connect(access.kubeconfig) as connection:
            await kubernetes.define(connection)

    asyncio.run(define())
    return access


@pytest.fixture
async def connection(defined: Access) -> AsyncIterator[Connection]:
    """Connection as administrator."""
    async with connect(defined.kubeconfig) as found:
        yield found


@pytest.fixture
async def namespace(connection: Connection) -> AsyncIterator[str]:
    """Namespace of this test alone."""
    async with kubernetes.namespace(connection) as name:
        yield name
