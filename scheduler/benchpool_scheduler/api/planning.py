"""Planning through the API: what if, the recorded history to replay, and where GPU-hours went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def whatif(request: Request) -> Answer:
    """Answer what would be otherwise with another configuration or more GPUs."""
    return Answer(await request.pool.whatifs.ask(request.caller, request.body))


async def history(request: Request) -> Answer:
    """Answer what ran and ended, as a trace."""
    text = await request.pool.history.read(request.caller, request.query.days)
    return Answer(text.encode(), headers={"Content-Type": "text/csv; charset=utf-8"})


async def report(request: Request) -> Answer:
    """Answer where the GPU-hours of a range of time went."""
    return Answer(await request.pool.use.report(request.caller, request.query))


async def enough(request: Request) -> Answer:
    """Answer how many GPUs would have been enough."""
    return Answer(await request.pool.use.enough(request.caller, request.query))


async def idle_benches(request: Request) -> Answer:
    """Answer what a rule for idle benches would have freed."""
    return Answer(await request.pool.use.idle_benches(request.caller, request.query))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.whatif: whatif,
    Operations.history: history,
    Operations.report: report,
    Operations.enough: enough,
    Operations.idle_benches: idle_benches,
}
