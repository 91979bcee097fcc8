"""API routes for shells in running workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.shells import WAIT_S


async def open_shell(request: Request) -> Answer:
    """Open a shell."""
    shells, job = request.pool.inside.shells, request.path["job"]
    return Answer(await shells.open(request.caller, job, request.body), status=201)


async def type_into(request: Request) -> Answer:
    """Send input to a shell."""
    shells, job = request.pool.inside.shells, request.path["job"]
    return Answer(await shells.type(request.caller, job, request.body))


async def output(request: Request) -> Answer:
    """Return the output of a shell."""
    shells, job = request.pool.inside.shells, request.path["job"]
    return Answer(await shells.read(request.caller, job, request.query, WAIT_S))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.open_shell: open_shell,
    Operations.type_into_shell: type_into,
    Operations.shell_output: output,
}
