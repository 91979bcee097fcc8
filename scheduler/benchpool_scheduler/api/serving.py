"""API routes for users' services: create, list, sleep, wake, stop, restart, remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def serve(request: Request) -> Answer:
    """Create a service. Answer when it is on disk."""
    return Answer(await request.pool.services.serve(request.caller, request.body), status=201)


async def services(request: Request) -> Answer:
    """Return the services that match the query."""
    return Answer(request.pool.services.select(request.caller, request.query))


async def service(request: Request) -> Answer:
    """Return a service."""
    return Answer(request.pool.services.show(request.caller, request.path["service"]))


async def sleep_service(request: Request) -> Answer:
    """Put a service to sleep."""
    return Answer(await request.pool.services.sleep(request.caller, request.path["service"]))


async def wake_service(request: Request) -> Answer:
    """Wake a service."""
    return Answer(await request.pool.services.wake(request.caller, request.path["service"]))


async def stop_service(request: Request) -> Answer:
    """Stop a service."""
    name = request.path["service"]
    return Answer(await request.pool.services.stop(request.caller, name, request.body.reason))


async def restart_service(request: Request) -> Answer:
    """Replace the replicas of a service."""
    return Answer(await request.pool.services.restart(request.caller, request.path["service"]))


async def remove_service(request: Request) -> Answer:
    """Remove a service."""
    name = request.path["service"]
    return Answer(await request.pool.services.remove(request.caller, name, request.body.reason))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.serve: serve,
    Operations.services: services,
    Operations.service: service,
    Operations.sleep_service: sleep_service,
    Operations.wake_service: wake_service,
    Operations.stop_service: stop_service,
    Operations.restart_service: restart_service,
    Operations.remove_service: remove_service,
}
