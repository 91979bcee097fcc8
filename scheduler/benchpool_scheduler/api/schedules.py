"""Schedules: begin, look, pause, resume, remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def begin_schedule(request: Request) -> Answer:
    """Answer when the schedule is on disk."""
    return Answer(await request.pool.schedules.begin(request.caller, request.body), status=201)


async def preview_schedule(request: Request) -> Answer:
    """Answer when it would send."""
    return Answer(request.pool.schedules.preview(request.caller, request.body))


async def schedules(request: Request) -> Answer:
    """Answer the schedules that the query selects."""
    return Answer(request.pool.schedules.select(request.caller, request.query))


async def schedule(request: Request) -> Answer:
    """Answer a schedule."""
    return Answer(request.pool.schedules.show(request.caller, request.path["schedule"]))


async def pause_schedule(request: Request) -> Answer:
    """Pause a schedule."""
    return Answer(await request.pool.schedules.pause(request.caller, request.path["schedule"]))


async def resume_schedule(request: Request) -> Answer:
    """Let a schedule send again."""
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
