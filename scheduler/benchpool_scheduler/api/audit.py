"""Audit trail: records of API requests, and the routes that read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler

from benchpool_scheduler.api.routing import Answer, Handle, Request, Route
from benchpool_scheduler.contract import Job
from benchpool_scheduler.contract.audit import AuditOutcome, Scalar
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service import AuditEvent, Caller, Pool

ACCEPTED = 202
"""Status of a request that changed nothing yet, such as a repeated queue request."""

ALWAYS_NOTED = frozenset({401, 403})
"""Statuses of refusals that are recorded even for read-only operations."""

NEVER_NOTED = frozenset({429, 503})
"""Statuses of refusals that are never recorded: rate limit and unavailable."""

Values = Mapping[str, Scalar]


async def handled(route: Route, request: Request) -> Answer:
    """Run the operation and record it in the audit trail before its answer is sent."""
    before = _job_before(route.operation, request)
    answer = await route.handle(request)
    only_asks = getattr(request.body, "only_asks", False)
    if route.operation.audited and answer.status != ACCEPTED and not only_asks:
        http = request.transport.request
        deed = done(
            *(route.operation, request.caller, http, request.path),
            *(request.body, answer.value, before),
        )
        if not deed.reason and (why := getattr(request.query, "reason", None)):
            deed = replace(deed, reason=why)
        await request.pool.audit.record(deed)
    return answer


def note(
    pool: Pool,
    operation: Operation[Any],
    caller: Caller,
    handler: RequestHandler,
    error: BenchpoolError,
) -> None:
    """Record a refused request, if it is relevant for the audit trail."""
    deed = _refused(operation, caller, handler.request, handler.path_kwargs, error)
    if deed is not None:
        pool.audit.note(deed)


def _job_before(operation: Operation[Any], request: Request) -> Job | None:
    """Return the job before an operation changes it. None if the caller may not see it."""
    if not operation.audited or "job" not in request.path:
        return None
    try:
        return request.pool.jobs.detail(request.caller, request.path["job"]).job
    except BenchpoolError:
        return None


def done(
    operation: Operation[Any],
    caller: Caller,
    request: HTTPServerRequest,
    path: Mapping[str, str],
    body: object,
    value: object,
    before: Job | None,
) -> AuditEvent:
    """Return the audit event of an operation with this request body and answer value."""
    was, now = (
        _changes(body, value, before)
        if isinstance(value, Job)
        else ({}, {**_small_fields(body), **_small_fields(value)})
    )
    return AuditEvent(
        caller,
        request.remote_ip or "",
        operation.name,
        value.id if isinstance(value, Job) else next(iter(path.values()), ""),
        reason=getattr(body, "reason", None) or "",
        before=was,
        after=now,
    )


def _changes(body: object, after: Job, before: Job | None) -> tuple[Values, Values]:
    """Return the requested fields before and after, or the state if only that changed.

    Other fields are left out: the job may start while its priority is being changed.
    """
    asked = list(body.__struct_fields__) if isinstance(body, msgspec.Struct) else []
    if before is None:
        return {}, _small_fields(after, ["state", *asked])
    for names in (asked, ["state"]):
        old, new = _small_fields(before, names), _small_fields(after, names)
        changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        if changed:
            return _only(old, changed), _only(new, changed)
    return {}, {}


def _only(values: Values, names: Iterable[str]) -> Values:
    return {name: values[name] for name in names if name in values}


def _refused(
    operation: Operation[Any],
    caller: Caller,
    request: HTTPServerRequest,
    path: Mapping[str, str],
    error: BenchpoolError,
) -> AuditEvent | None:
    """Return the audit event of a refusal. None if it is not recorded."""
    status = error.http_status
    if status in NEVER_NOTED or not (operation.audited or status in ALWAYS_NOTED):
        return None
    return AuditEvent(
        caller,
        request.remote_ip or "",
        operation.name,
        next(iter(path.values()), ""),
        AuditOutcome.REFUSED if status < 500 else AuditOutcome.FAILED,
        error.code,
        error.message,
    )


async def read(request: Request) -> Answer:
    """Return audit records, newest first."""
    return Answer(await request.pool.audit.read(request.caller, request.query))


async def verify(request: Request) -> Answer:
    """Verify the chain of audit records and return the result."""
    return Answer(await request.pool.audit.verify(request.caller, request.query))


async def login(request: Request) -> Answer:
    """Record a login that the Hub reports."""
    await request.pool.audit.login(request.body)
    return Answer(status=204)


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.audit: read,
    Operations.verify_audit: verify,
    Operations.report_login: login,
}


def _small_fields(value: object, names: Iterable[str] | None = None) -> dict[str, Scalar]:
    """Return the small fields: numbers, texts and lists of texts."""
    if not isinstance(value, msgspec.Struct):
        return {}
    found: dict[str, Scalar] = {}
    for name in value.__struct_fields__ if names is None else names:
        one = msgspec.to_builtins(getattr(value, name, None))
        if isinstance(one, list | tuple) and all(isinstance(each, str) for each in one):
            sentences = all(each.endswith(".") for each in one)
            one = (" " if sentences else ", ").join(one)
        if one is not None and isinstance(one, str | int | float | bool):
            found[name] = one
    return found
