"""API routes for project membership and access requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def listed(request: Request) -> Answer:
    """Return the access requests that the caller may see."""
    return Answer(await request.pool.access.requests(request.caller, request.query.user))


async def ask(request: Request) -> Answer:
    """Store an access request for a project."""
    return Answer(await request.pool.access.ask(request.caller, request.body))


async def add(request: Request) -> Answer:
    """Add a member to a project."""
    return Answer(await request.pool.access.add(request.caller, request.body))


async def remove(request: Request) -> Answer:
    """Remove a member from a project."""
    return Answer(await request.pool.access.remove(request.caller, request.body))


async def decline(request: Request) -> Answer:
    """Decline an access request."""
    return Answer(await request.pool.access.decline(request.caller, request.body))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.access: listed,
    Operations.ask_access: ask,
    Operations.add_member: add,
    Operations.remove_member: remove,
    Operations.decline_access: decline,
}
