"""API routes for the machines of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def nodes(request: Request) -> Answer:
    """Return the machines of the pool."""
    return Answer(request.pool.nodes.nodes(request.caller))


async def drain(request: Request) -> Answer:
    """Stop new starts on a machine."""
    care = request.pool.nodes
    return Answer(await care.drain(request.caller, request.path["node"], request.body))


async def open_(request: Request) -> Answer:
    """Allow jobs and benches to start on a machine again."""
    care = request.pool.nodes
    return Answer(await care.open(request.caller, request.path["node"], request.body))


async def note(request: Request) -> Answer:
    """Store a note for users about a machine."""
    care = request.pool.nodes
    return Answer(await care.note(request.caller, request.path["node"], request.body))


async def maintain(request: Request) -> Answer:
    """Set the maintenance window of a machine."""
    care = request.pool.nodes
    return Answer(await care.maintain(request.caller, request.path["node"], request.body))


async def report(request: Request) -> Answer:
    """Take a report of a node agent."""
    metering = request.pool.metering
    return Answer(metering.take_report(request.path["node"], request.body))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.nodes: nodes,
    Operations.drain_node: drain,
    Operations.open_node: open_,
    Operations.note_node: note,
    Operations.maintain_node: maintain,
    Operations.report_node: report,
}
