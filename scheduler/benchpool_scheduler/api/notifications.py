"""API routes for the caller's notifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def read(request: Request) -> Answer:
    """Return the caller's notification settings."""
    return Answer(request.pool.notifier.settings(request.caller))


async def change(request: Request) -> Answer:
    """Change the caller's notification settings."""
    return Answer(await request.pool.notifier.change(request.caller, request.body))


async def test(request: Request) -> Answer:
    """Send a test notification."""
    return Answer(await request.pool.notifier.test(request.caller))


async def reload(request: Request) -> Answer:
    """Reload the site's notification settings."""
    return Answer(await request.pool.notifier.reload(request.caller))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.notifications: read,
    Operations.change_notifications: change,
    Operations.test_notifications: test,
    Operations.reload_notifications: reload,
}
