"""HTTP API of the scheduler, under ``/api/v1/`` of its service address."""

from __future__ import annotations

import asyncio
from collections import ChainMap, defaultdict
from typing import Any

from tornado.web import url

from benchpool_scheduler.api import (
    access,
    audit,
    configuration,
    idle_benches,
    jobs,
    leases,
    logs,
    nodes,
    notifications,
    objects,
    openapi,
    operation,
    planning,
    runs,
    schedules,
    serving,
    shells,
    sweeps,
    views,
)
from benchpool_scheduler.api.bodies import Bodies, BodyBounds
from benchpool_scheduler.api.callers import Callers, NodeIdentity
from benchpool_scheduler.api.endpoint import Endpoint, Service
from benchpool_scheduler.api.identity import HubIdentity, Identity
from benchpool_scheduler.api.limits import Limits, Rate
from benchpool_scheduler.api.metrics import Traffic
from benchpool_scheduler.api.routing import Route, bound
from benchpool_scheduler.api.stream import Timing
from benchpool_scheduler.contract import API_VERSION
from benchpool_scheduler.service import Pool

__all__ = ["Api", "BodyBounds", "HubIdentity", "Identity", "NodeIdentity", "Rate", "Timing"]

END_PATIENCE_S = 2.0
"""Timeout for requests in progress when the process stops, in seconds."""


class Api:
    """HTTP API of one pool.

    Args:
        pool: Pool that handles the requests. The owner opens and closes it.
        identity: Identifies callers.
        rate: Rate limit per user. ``timing``: times of event streams, in seconds.
        bodies: Limits for request bodies in transfer.
        metrics_token: Grants access to the metrics, besides the Hub's tokens. Empty for none.
        nodes: Identifies node agents. None if there are none.
        start: ID of the start of ``benchpool up``. None without one.
    """

    def __init__(
        self,
        pool: Pool,
        identity: Identity,
        *,
        rate: Rate | None = None,
        timing: Timing | None = None,
        bodies: BodyBounds | None = None,
        metrics_token: str = "",
        nodes: NodeIdentity | None = None,
        start: str | None = None,
    ) -> None:
        traffic = Traffic()
        self.routes = _routes(traffic, timing or Timing(), openapi.text().encode(), start)
        self._service = Service(
            pool,
            Callers(identity, metrics_token, nodes),
            Limits(rate or Rate()),
            traffic,
            Bodies(bodies),
        )

    def rules(self, prefix: str) -> list[Any]:
        """Return Tornado's rules below a prefix that ends in a slash."""
        root = f"{prefix}api/{API_VERSION}/"
        by_path: dict[str, dict[str, Route]] = defaultdict(dict)
        for route in self.routes:
            by_path[route.operation.pattern][route.operation.method] = route
        shared = {"service": self._service}
        rules = [
            url(f"{root}{path}", Endpoint, {"routes": methods, **shared})
            for path, methods in by_path.items()
        ]
        return [*rules, url(f"{prefix}api/.*", Endpoint, {"routes": {}, **shared})]

    @property
    def open_streams(self) -> int:
        """Number of open event streams and followed logs."""
        return len(self._service.open_streams)

    @property
    def requests_under_way(self) -> int:
        """Number of requests in progress."""
        return len(self._service.under_way)

    async def end(self, patience_s: float = END_PATIENCE_S) -> None:
        """End all event streams and requests, so that the process can stop.

        Clients reconnect their streams. Requests that are not answered after ``patience_s`` seconds
        get the error that the scheduler is stopping, and their clients retry.
        """
        for gone in tuple(self._service.open_streams):
            gone.set()
        tasks = [task for task in self._service.under_way if task is not None]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=patience_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)


def _routes(
    traffic: Traffic, timing: Timing, document: bytes, start: str | None
) -> tuple[Route, ...]:
    handlers = (
        jobs.HANDLERS,
        logs.handlers(timing),
        views.handlers(timing),
        runs.HANDLERS,
        shells.HANDLERS,
        schedules.HANDLERS,
        serving.HANDLERS,
        sweeps.HANDLERS,
        leases.HANDLERS,
        idle_benches.HANDLERS,
        objects.HANDLERS,
        access.HANDLERS,
        notifications.HANDLERS,
        configuration.HANDLERS,
        planning.HANDLERS,
        nodes.HANDLERS,
        audit.HANDLERS,
        operation.handlers(traffic, document, start),
    )
    return bound(dict(ChainMap(*map(dict, handlers))), objects.RECEIVERS)
