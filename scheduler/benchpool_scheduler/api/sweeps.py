"""API routes for sweeps: create, list, stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def begin_sweep(request: Request) -> Answer:
    """Create a sweep. Answer when it is on disk and its first trials are jobs."""
    return Answer(await request.pool.sweeps.begin(request.caller, request.body), status=201)


async def preview_sweep(request: Request) -> Answer:
    """Return the trials and the cost of a sweep."""
    return Answer(await request.pool.sweeps.preview(request.caller, request.body))


async def sweeps(request: Request) -> Answer:
    """Return the sweeps that match the query."""
    return Answer(await request.pool.sweeps.select(request.caller, request.query))


async def sweep(request: Request) -> Answer:
    """Return a sweep and its trials."""
    return Answer(await request.pool.sweeps.show(request.caller, request.path["sweep"]))


async def stop_sweep(request: Request) -> Answer:
    """Stop a sweep."""
    found = request.path["sweep"]
    return Answer(await request.pool.sweeps.stop(request.caller, found, request.body))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.begin_sweep: begin_sweep,
    Operations.preview_sweep: preview_sweep,
    Operations.sweeps: sweeps,
    Operations.sweep: sweep,
    Operations.stop_sweep: stop_sweep,
}
