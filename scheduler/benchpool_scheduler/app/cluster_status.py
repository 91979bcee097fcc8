"""Says in ``Project`` and ``NodePool`` objects how they stand, for who looks with kubectl."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from benchpool_scheduler.app.cluster_configuration import ClusterConfiguration
from benchpool_scheduler.kube import Connection, KubeFailure, KubeUnavailable
from benchpool_scheduler.resources.declaring import Resource
from benchpool_scheduler.resources.pools import NODE_POOLS, PROJECTS
from benchpool_scheduler.service import Caller, Pool

log = logging.getLogger("benchpool_scheduler")

PACE_S = 5.0
OURSELVES = Caller("benchpool", admin=True, kind="service")

Standing = Mapping[str, int]


class ClusterStatus:
    """Writes what has changed, every few seconds; what was written is known only here."""

    def __init__(
        self, connection: Connection, configuration: ClusterConfiguration, epoch: int
    ) -> None:
        self._connection = connection
        self._configuration = configuration
        self._epoch = epoch
        self._written: dict[tuple[str, str], Standing] = {}

    async def keep(self, pool: Pool) -> None:
        """Write, for ever."""
        while True:
            await asyncio.sleep(PACE_S)
            try:
                await self._write(pool)
            except (KubeFailure, KubeUnavailable) as failed:
                log.warning("the standing of projects could not be written: %s", failed)

    async def _write(self, pool: Pool) -> None:
        projects = {
            it.name: {"fairShare": it.fair_share, "allocated": it.allocated, "waiting": it.waiting}
            for it in pool.status(OURSELVES, gpus=False).projects
        }
        await self._put(PROJECTS, projects)
        await self._put(NODE_POOLS, pool.node_pools())

    async def _put(self, resource: Resource, standings: Mapping[str, Standing]) -> None:
        objects = self._configuration.objects_of(resource)
        for name, standing in standings.items():
            key = (resource.kind.plural, name)
            if name not in objects or self._written.get(key) == standing:
                continue
            status = {"status": {**standing, "epoch": self._epoch}}
            await self._connection.patch(resource.kind, objects[name], status, subresource="status")
            self._written[key] = standing
