"""API routes for schedules: create, list, pause, resume, remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def begin_schedule(request: Request) -> Answer:
    """Create a schedule. Answer when it is on disk."""
    return Answer(await request.pool.schedules.begin(request.caller, request.body), status=201)


async def preview_schedule(request: Request) -> Answer:
    """Return when a schedule would submit jobs."""
    return Answer(request.pool.schedules.preview(request.caller, request.body))


async def schedules(request: Request) -> Answer:
    """Return the schedules that match the query."""
    return Answer(request.pool.schedules.select(request.caller, request.query))


async def schedule(request: Request) -> Answer:
    """Return a schedule."""
    return Answer(request.pool.schedules.show(request.caller, request.path["schedule"]))


async def pause_schedule(request: Request) -> Answer:
    """Pause a schedule."""
    return Answer(await request.pool.schedules.pause(request.caller, request.path["schedule"]))


async def resume_schedule(request: Request) -> Answer:
    """Resume a schedule."""
    return Answer(await request.pool.schedules.resume(request.caller, request.path["schedule"]))


async def remove_schedule(request: Request) -> Answer:
    """Remove a schedule."""
    return Answer(await request.pool.schedules.remove(request.caller, request.path["schedule"]))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.begin_schedule: begin_schedule,
    Operations.preview_schedule: preview_schedule,
    Operations.schedules: schedules,
    Operations.schedule: schedule,
    Operations.pause_schedule: pause_schedule,
    Operations.resume_schedule: resume_schedule,
    Operations.remove_schedule: remove_schedule,
}
