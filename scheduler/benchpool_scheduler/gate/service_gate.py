"""The gate as its process has it: rules, figures, and an end."""

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
    """The way to all services.

    Args:
        directory: Knows them.
        identity: Tells who asks.
        prefix: Where benchpool lies, with a slash at its end; services are at ``<prefix>s/NAME/``.
        hub_prefix: Where the Hub's own pages lie.
        now: Seconds, the clock of the figures.
        rate, bodies: Bounds for one user, and for bodies that are on their way.
        hidden_cookies: Names of further cookies that no program may see, as those of a proxy that
            logs people in before the Hub does.
        timing: How often whoever has a request open is asked for again.
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
        """Return Tornado's rules, to be added before those of the pages."""
        base, given = re.escape(self._desk.prefix), {"desk": self._desk}
        return [
            URLSpec(f"{base}s/({SERVICE_NAME})(?:/.*)?", GateHandler, given),
            URLSpec(f"{base}service-state/({SERVICE_NAME})", ServiceStateHandler, given),
        ]

    def in_flight(self, name: str, backend: str | None = None) -> int:
        """Return how many requests and websockets are open, at all replicas or at one."""
        return self._figures.in_flight(name, backend)

    def figures(self, name: str) -> ServiceFigures:
        """Return what is known of the requests of a service."""
        return self._figures.of(name)

    async def drained(self, backend: str) -> None:
        """Wait until a replica has no request in flight; the directory names it no more by then."""
        await self._figures.drained(backend)

    def forget(self, backend: str) -> None:
        """Forget a replica that has gone."""
        self._figures.forget(backend)

    async def end(self, patience_s: float = 2.0) -> None:
        """Let requests that are open be answered for a moment, then end what waits and streams."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._desk.quiet.wait()
        for gone in tuple(self._desk.under_way):
            gone.set()
        self._desk.connections.close()
