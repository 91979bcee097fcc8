"""API routes for idle benches: activity reports and owners' answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def benches(request: Request) -> Answer:
    """Return the idle state of the benches that the caller may see."""
    return Answer(request.pool.idle.list(request.caller))


async def report(request: Request) -> Answer:
    """Take an activity report of a notebook server and return the idle state of its bench."""
    lease = request.path["lease"]
    return Answer(request.pool.idle.report(request.caller, lease, request.body))


async def keep(request: Request) -> Answer:
    """Keep a bench for its owner."""
    return Answer(await request.pool.idle.keep(request.caller, request.path["lease"]))


async def release(request: Request) -> Answer:
    """Start releasing a bench."""
    return Answer(request.pool.idle.release(request.caller, request.path["lease"]))


async def released(request: Request) -> Answer:
    """End a lease whose server keeps running."""
    await request.pool.idle.released(request.caller, request.path["lease"])
    return Answer(status=204)


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.benches: benches,
    Operations.report_bench_activity: report,
    Operations.keep_bench: keep,
    Operations.release_bench: release,
    Operations.released_bench: released,
}
