"""API routes for runs: run a job again, and compare two runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.service.jobs.run_again import run_again


async def again(request: Request) -> Answer:
    """Submit a job again. Answer 201 when it is on disk, or 200 for a repeated idempotency key."""
    job, is_new = await run_again(
        request.pool.jobs, request.caller, request.path["job"], request.body
    )
    return Answer(job, status=201 if is_new else 200)


async def job_changes(request: Request) -> Answer:
    """Return the differences between two runs."""
    comparison = request.pool.comparison
    return Answer(await comparison.changes(request.caller, request.path["job"], request.query.than))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.again: again,
    Operations.job_changes: job_changes,
}
