"""A real API server, and one that can be cut off."""

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
    """A connection as administrator."""
    async with connect(access.kubeconfig) as found:
        yield found


@pytest.fixture
async def namespace(connection: Connection) -> AsyncIterator[str]:
    """A namespace of this test alone."""
    async with kubernetes.namespace(connection) as name:
        yield name
