"""A real API server, and one whose connection can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from benchpool_cluster.access import Access
from benchpool_cluster.fixtures import access as access
from benchpool_cluster.fixtures import control_plane as control_plane
from benchpool_scheduler.kube import Connection, connect
from benchpool_support import kubernetes


@pytest.fixture
async def connection(access: Access) -> AsyncIterator[Connection]:
    """Connection as administrator."""
    async with connect(access.kubeconfig) as found:
        yield found


@pytest.fixture
async def namespace(connection: Connection) -> AsyncIterator[str]:
    """Namespace of this test alone."""
    async with kubernetes.namespace(connection) as name:
        yield name
