"""Writes the standing of ``Project`` and ``NodePool`` objects to their status, for kubectl users.

The current status is known by watch, so only changes are written. This includes objects that were
recreated and the first writes of a new leader. Writes are paced to spare the API server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from benchpool_scheduler.app.cluster_configuration import ClusterConfiguration
from benchpool_scheduler.kube import Connection, KubeFailure, KubeNotFound, KubeUnavailable
from benchpool_scheduler.resources.declaring import Resource
from benchpool_scheduler.resources.pools import NODE_POOLS, PROJECTS
from benchpool_scheduler.service import Caller, Pool

log = logging.getLogger("benchpool_scheduler")

LOOK_S = 5.0
"""Interval between two checks of the standing, in seconds."""
REST_S = 0.05
"""Pause after each write, in seconds (at most 20 writes a second)."""
OURSELVES = Caller("benchpool", admin=True, kind="service")


class ClusterStatus:
    """Writer of changed statuses."""

    def __init__(
        self, connection: Connection, configuration: ClusterConfiguration, epoch: int
    ) -> None:
        self._connection = connection
        self._configuration = configuration
        self._epoch = epoch

    async def keep(self, pool: Pool) -> None:
        """Write changed statuses at intervals, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._write(pool)
            except (KubeFailure, KubeUnavailable) as failed:
                log.warning("the status of projects could not be written: %s", failed)

    async def _write(self, pool: Pool) -> None:
        projects = {
            it.name: {"fairShare": it.fair_share, "allocated": it.allocated, "waiting": it.waiting}
            for it in pool.views.status(OURSELVES, gpus=False).projects
        }
        await self._put(PROJECTS, projects)
        await self._put(NODE_POOLS, pool.views.node_pools())

    async def _put(self, resource: Resource, standings: Mapping[str, Mapping[str, int]]) -> None:
        for called, (name, stored) in self._configuration.objects_of(resource).items():
            standing = standings.get(called)
            if standing is None or standing == stored:
                continue
            status = {"status": {**standing, "epoch": self._epoch}}
            try:
                await self._connection.patch(resource.kind, name, status, subresource="status")
            except KubeNotFound:
                continue
            await asyncio.sleep(REST_S)
