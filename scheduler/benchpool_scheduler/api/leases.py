"""API routes for build GPUs of notebook servers, used by the spawner (R2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def reserve(request: Request) -> Answer:
    """Reserve GPUs for a starting server, or raise the reason for the refusal."""
    return Answer(await request.pool.benches.reserve(request.caller, request.body), status=201)


async def wait_in_line(request: Request) -> Answer:
    """Reserve GPUs for a starting server, or return its queue position."""
    answer = await request.pool.benches.wait_in_line(request.caller, request.body)
    return Answer(answer, status=202 if answer.lease is None else 201)


async def list_line(request: Request) -> Answer:
    """Return the bench queue, as far as the caller may see it."""
    return Answer(request.pool.benches.line(request.caller))


async def release(request: Request) -> Answer:
    """Release a lease. A lease that has already ended is no error."""
    await request.pool.benches.release(request.caller, request.path["lease"])
    return Answer(status=204)


async def ask_back(request: Request) -> Answer:
    """Ask the owner of a bench to release it."""
    lease = request.path["lease"]
    return Answer(await request.pool.benches.ask_back(request.caller, lease, request.body))


async def list_leases(request: Request) -> Answer:
    """Return the leases of one user, or all."""
    return Answer(request.pool.benches.leases(request.caller, request.query.user))


async def parked_benches(request: Request) -> Answer:
    """Return the parked benches that the caller may see."""
    return Answer(request.pool.reservations.parking.benches(request.caller))


async def park_bench(request: Request) -> Answer:
    """Start parking a bench."""
    parking = request.pool.reservations.parking
    return Answer(await parking.park(request.caller, request.path["lease"]), status=202)


async def unpark_bench(request: Request) -> Answer:
    """Start unparking a bench."""
    parking = request.pool.reservations.parking
    return Answer(await parking.unpark(request.caller, request.path["lease"]), status=202)


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.reserve: reserve,
    Operations.wait_in_line: wait_in_line,
    Operations.line: list_line,
    Operations.leases: list_leases,
    Operations.release: release,
    Operations.ask_back: ask_back,
    Operations.parked_benches: parked_benches,
    Operations.park_bench: park_bench,
    Operations.unpark_bench: unpark_bench,
}
