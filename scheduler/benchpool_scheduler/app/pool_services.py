"""Adapters between the pool's services and the gate."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.app import serving
from benchpool_scheduler.contract.serving import ServiceState
from benchpool_scheduler.gate import Backend, Openness, ServiceGate, ServiceRoute
from benchpool_scheduler.service import Caller, Clock, Pool, ServiceFlow, Services


def gate_of(
    pool: Pool, identity: Identity, prefix: str, hidden_cookies: Iterable[str] = ()
) -> ServiceGate:
    """Return the gate to the services of a pool, and connect its figures to the pool."""
    clock = pool.observed.settings.clock
    gate = ServiceGate(
        PoolServices(pool.services, clock),
        identity,
        prefix=prefix,
        hub_prefix=serving.hub_prefix(),
        now=clock.now,
        hidden_cookies=hidden_cookies,
    )
    pool.services.views.table.counts = GateCounts(gate)
    return gate


OPENNESS = {
    ServiceState.READY: Openness.READY,
    ServiceState.STARTING: Openness.STARTING,
    ServiceState.ASLEEP: Openness.ASLEEP,
    ServiceState.PAUSED: Openness.PAUSED,
    ServiceState.FAILED: Openness.FAILED,
    ServiceState.STOPPED: Openness.PAUSED,
}

AGAIN_S = {
    ServiceState.STARTING: 5,
    ServiceState.ASLEEP: 5,
    ServiceState.PAUSED: 30,
    ServiceState.FAILED: 30,
    ServiceState.STOPPED: 300,
}
"""Retry delay for clients by service state, in seconds, if no start time is known."""


class PoolServices:
    """Services that a caller may reach, and their backends."""

    def __init__(self, services: Services, clock: Clock) -> None:
        self._services = services
        self._clock = clock
        self._waiting: dict[str, set[asyncio.Future[None]]] = defaultdict(set)
        services.book.changed.subscribe(self._wake)

    def route(self, name: str, caller: Caller) -> ServiceRoute:
        """Return the route to a service. Errors: NotFound."""
        service = self._services.opened(caller, name)
        how = self._services.views.condition(service)
        table = self._services.views.table
        backends = tuple(
            Backend(it.job, host, it.port)
            for it in table.ready(service)
            if (host := table.host(it)) is not None
        )
        if backends:
            return ServiceRoute(name, Openness.READY, backends, "", 1, service.keep_prefix)
        again = AGAIN_S.get(how.state, 1)
        at = how.retry_at or self._services.views.starts_at(service)
        if at is not None:
            again = max(round(at - self._clock.now()), 1)
        return ServiceRoute(
            name, OPENNESS[how.state], (), how.text, min(again, 3600), service.keep_prefix
        )

    def asked(self, name: str) -> None:
        """Record a request, which wakes a sleeping service."""
        self._services.runner.asked(name)

    def changed(self, name: str) -> Awaitable[object]:
        """Return an awaitable that completes at the next change of a service."""
        waiting = self._waiting[name]
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.add(future)
        future.add_done_callback(waiting.discard)
        return future

    def _wake(self, name: str) -> None:
        for future in self._waiting.pop(name, set()):
            if not future.done():
                future.set_result(None)


class GateCounts:
    """Request figures of the gate."""

    def __init__(self, gate: ServiceGate) -> None:
        self._gate = gate

    def flow(self, name: str) -> ServiceFlow:
        """Return the request figures of a service."""
        seen = self._gate.figures(name)
        return ServiceFlow(
            requests_per_s=seen.requests_per_s,
            p50_ms=seen.p50_ms,
            p95_ms=seen.p95_ms,
            in_flight=seen.in_flight,
            last_request_at=seen.last_request_at,
            unserved_at=seen.unserved_at,
        )

    def in_flight(self, name: str, replica: str) -> int:
        """Return the number of requests that a replica has not answered yet."""
        return self._gate.in_flight(name, replica)

    async def drained(self, replica: str) -> None:
        """Wait until a replica has answered all its requests."""
        await self._gate.drained(replica)
