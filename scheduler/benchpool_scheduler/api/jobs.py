"""API routes for jobs: submit, list, show, act."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract import JobsQuery, MetricsQuery
from benchpool_scheduler.contract.actions import JobActions
from benchpool_scheduler.contract.operation import Operation, declared
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.stacks import PeekQuery
from benchpool_scheduler.service.access import rights


async def submit(request: Request) -> Answer:
    """Submit a job. Answer 201 when it is on disk, or 200 for a repeated idempotency key."""
    job, is_new = await request.pool.jobs.submit_once(request.caller, request.body)
    return Answer(job, status=201 if is_new else 200)


async def preview(request: Request) -> Answer:
    """Return what a submission would do now."""
    return Answer(await request.pool.jobs.preview(request.caller, request.body))


async def list_jobs(request: Request) -> Answer:
    """Return the jobs that match the query."""
    query: JobsQuery = request.query
    return Answer(request.pool.jobs.select(request.caller, **structs.asdict(query)))


async def show(request: Request) -> Answer:
    """Return a job and its attempts."""
    return Answer(request.pool.jobs.detail(request.caller, request.path["job"]))


async def why(request: Request) -> Answer:
    """Return why a job waits (R22)."""
    return Answer(request.pool.jobs.why(request.caller, request.path["job"]))


async def usage(request: Request) -> Answer:
    """Return how an ended job used its resources."""
    return Answer(request.pool.jobs.usage(request.caller, request.path["job"]))


async def job_metrics(request: Request) -> Answer:
    """Return the metrics that a job has reported."""
    query: MetricsQuery = request.query
    return Answer(await request.pool.logs.metrics(request.caller, request.path["job"], query))


async def peek(request: Request) -> Answer:
    """Return what a running job is doing."""
    query: PeekQuery = request.query
    return Answer(await request.pool.inside.peeks.peek(request.caller, request.path["job"], query))


async def submission(request: Request) -> Answer:
    """Return the submission of a job."""
    return Answer(request.pool.jobs.submission(request.caller, request.path["job"]))


async def discard(request: Request) -> Answer:
    """Delete files of an ended job and return the job."""
    job = await request.pool.files.discard(request.caller, request.path["job"], request.body)
    return Answer(request.pool.jobs.detail(request.caller, job).job)


async def code(request: Request) -> Answer:
    """Return the submitted cells or script."""
    job = request.path["job"]
    submission = request.pool.jobs.submission(request.caller, job)
    return Answer(await request.pool.contents.code(job, submission))


def act(action: str) -> Handle:
    """Return the handler of an action on a job."""

    async def handle(request: Request) -> Answer:
        owner = request.pool.jobs.detail(request.caller, request.path["job"]).job.user
        why = getattr(request.body, "reason", None)
        rights.require_reason(request.caller, owner, action, why)
        return Answer(
            await request.pool.jobs.act(request.caller, request.path["job"], action, request.body)
        )

    return handle


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.submit: submit,
    Operations.preview: preview,
    Operations.jobs: list_jobs,
    Operations.job: show,
    Operations.why: why,
    Operations.usage: usage,
    Operations.job_metrics: job_metrics,
    Operations.peek: peek,
    Operations.submission: submission,
    Operations.discard: discard,
    Operations.code: code,
    **{one: act(one.name) for one in declared(JobActions)},
}
