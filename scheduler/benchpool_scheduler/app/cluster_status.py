"""Says in ``Project`` and ``NodePool`` objects how they stand, for who looks with kubectl.

What an object says is known by watch, so that only what has changed is written, by a new leader and
to an object that was made anew too; at a pace that the API server hardly feels.
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
"""How they stand is looked at so often."""
REST_S = 0.05
"""After each write: 20 a second."""
OURSELVES = Caller("benchpool", admin=True, kind="service")


class ClusterStatus:
    """Writes what has changed, every few seconds."""

    def __init__(
        self, connection: Connection, configuration: ClusterConfiguration, epoch: int
    ) -> None:
        self._connection = connection
        self._configuration = configuration
        self._epoch = epoch

    async def keep(self, pool: Pool) -> None:
        """Write, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._write(pool)
            except (KubeFailure, KubeUnavailable) as failed:
                log.warning("the standing of projects could not be written: %s", failed)

    async def _write(self, pool: Pool) -> None:
        projects = {
            it.name: {"fairShare": it.fair_share, "allocated": it.allocated, "waiting": it.waiting}
            for it in pool.views.status(OURSELVES, gpus=False).projects
        }
        await self._put(PROJECTS, projects)
        await self._put(NODE_POOLS, pool.views.node_pools())

    async def _put(self, resource: Resource, standings: Mapping[str, Mapping[str, int]]) -> None:
        for called, (name, said) in self._configuration.objects_of(resource).items():
            standing = standings.get(called)
            if standing is None or standing == said:
                continue
            status = {"status": {**standing, "epoch": self._epoch}}
            try:
                await self._connection.patch(resource.kind, name, status, subresource="status")
            except KubeNotFound:
                continue
            await asyncio.sleep(REST_S)
