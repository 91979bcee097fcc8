"""Runs through the API: once more as it was, and what is otherwise in one than in another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.service.jobs.run_again import run_again


async def again(request: Request) -> Answer:
    """Answer when the new job is on disk: 201, or 200 for a repeat by key."""
    job, is_new = await run_again(
        request.pool.jobs, request.caller, request.path["job"], request.body
    )
    return Answer(job, status=201 if is_new else 200)


async def job_changes(request: Request) -> Answer:
    """Answer what is otherwise."""
    comparison = request.pool.comparison
    return Answer(await comparison.changes(request.caller, request.path["job"], request.query.than))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.again: again,
    Operations.job_changes: job_changes,
}
