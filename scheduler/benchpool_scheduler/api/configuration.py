"""``benchpool.yaml`` through the API."""

from __future__ import annotations

from benchpool_scheduler.api.routing import Answer, Request


async def check(request: Request) -> Answer:
    """Answer what a configuration would change."""
    return Answer(request.pool.check_configuration(request.caller, request.body))


async def apply(request: Request) -> Answer:
    """Put a configuration in force: all or nothing."""
    return Answer(await request.pool.apply_configuration(request.caller, request.body))
