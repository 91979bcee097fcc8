"""API routes for planning: what-if, job history for replays, and GPU-hour reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def whatif(request: Request) -> Answer:
    """Return what would change with another configuration or more GPUs."""
    return Answer(await request.pool.whatifs.ask(request.caller, request.body))


async def history(request: Request) -> Answer:
    """Return the ended jobs as a trace."""
    text = await request.pool.history.read(request.caller, request.query.days)
    return Answer(text.encode(), headers={"Content-Type": "text/csv; charset=utf-8"})


async def report(request: Request) -> Answer:
    """Return the use of GPU-hours in a time range."""
    return Answer(await request.pool.use.report(request.caller, request.query))


async def enough(request: Request) -> Answer:
    """Return the number of GPUs that would have been enough."""
    return Answer(await request.pool.use.enough(request.caller, request.query))


async def idle_benches(request: Request) -> Answer:
    """Return what a rule for idle benches would have freed."""
    return Answer(await request.pool.use.idle_benches(request.caller, request.query))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.whatif: whatif,
    Operations.history: history,
    Operations.report: report,
    Operations.enough: enough,
    Operations.idle_benches: idle_benches,
}
