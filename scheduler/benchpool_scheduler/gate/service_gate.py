"""The gate as part of the service process: routes, figures, shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterable

from tornado.routing import URLSpec

from benchpool_scheduler.api.bodies import Bodies, BodyBounds
from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.api.limits import Limits, Rate
from benchpool_scheduler.api.stream import Timing
from benchpool_scheduler.contract.serving import SERVICE_NAME
from benchpool_scheduler.gate.desk import GateDesk
from benchpool_scheduler.gate.directory import ServiceDirectory
from benchpool_scheduler.gate.figures import RequestFigures, ServiceFigures
from benchpool_scheduler.gate.handler import GateHandler
from benchpool_scheduler.gate.state_handler import ServiceStateHandler


class ServiceGate:
    """Reverse proxy for all services.

    Args:
        directory: Directory of the services.
        identity: Authenticates callers.
        prefix: Path of benchpool with a trailing slash; services are at ``<prefix>s/NAME/``.
        hub_prefix: Path of the Hub's own pages.
        now: Clock of the figures, in seconds.
        rate, bodies: Limits for one user, and for bodies in transit.
        hidden_cookies: Names of further cookies that no program may see, e.g. those of a proxy that
            logs users in before the Hub does.
        timing: Intervals at which the callers of open requests are authenticated again.
    """

    def __init__(
        self,
        directory: ServiceDirectory,
        identity: Identity,
        *,
        prefix: str,
        hub_prefix: str = "/hub/",
        now: Callable[[], float] = time.time,
        rate: Rate | None = None,
        bodies: BodyBounds | None = None,
        hidden_cookies: Iterable[str] = (),
        timing: Timing | None = None,
    ) -> None:
        self._figures = RequestFigures(now)
        self._desk = GateDesk(
            directory=directory,
            identity=identity,
            prefix=prefix,
            hub_prefix=hub_prefix,
            now=now,
            figures=self._figures,
            limits=Limits(rate or Rate()),
            bodies=Bodies(bodies),
            hidden=frozenset(name.lower() for name in hidden_cookies),
            timing=timing or Timing(),
        )

    def routes(self) -> list[URLSpec]:
        """Return Tornado's URL rules, to be added before those of the pages."""
        base, given = re.escape(self._desk.prefix), {"desk": self._desk}
        return [
            URLSpec(f"{base}s/({SERVICE_NAME})(?:/.*)?", GateHandler, given),
            URLSpec(f"{base}service-state/({SERVICE_NAME})", ServiceStateHandler, given),
        ]

    def in_flight(self, name: str, backend: str | None = None) -> int:
        """Return the number of open requests and websockets, at all replicas or at one."""
        return self._figures.in_flight(name, backend)

    def figures(self, name: str) -> ServiceFigures:
        """Return the request figures of a service."""
        return self._figures.of(name)

    async def drained(self, backend: str) -> None:
        """Wait until a replica, which the directory no longer lists, has no request in flight."""
        await self._figures.drained(backend)

    def forget(self, backend: str) -> None:
        """Remove the figures of an ended replica."""
        self._figures.forget(backend)

    async def end(self, patience_s: float = 2.0) -> None:
        """Let open requests finish for a moment, then end waiting requests and streams."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._desk.quiet.wait()
        for gone in tuple(self._desk.under_way):
            gone.set()
        self._desk.connections.close()
