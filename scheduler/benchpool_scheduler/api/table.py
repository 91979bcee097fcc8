"""The table of routes: every address that there is.

Who may ask is said here for the route as a whole; whose jobs a caller sees or may touch is
decided by the pool, in one place, for API and pages alike.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchpool_scheduler import contract
from benchpool_scheduler.api import (
    configuration,
    jobs,
    leases,
    logs,
    objects,
    operation,
    planning,
    views,
)
from benchpool_scheduler.api.metrics import Traffic
from benchpool_scheduler.api.routing import MIB, Handle, Kind, Route, Who
from benchpool_scheduler.api.stream import Timing

FILE_LIMIT = 256 * MIB
"""Largest object; the same bound as a snapshot's for one file."""


def routes(traffic: Traffic, timing: Timing, document: bytes = b"{}") -> tuple[Route, ...]:
    """Return all routes below ``/api/v1/``; ``document`` is their own description."""
    return (
        *_jobs(),
        *_logs(timing),
        *_pool(timing),
        *_leases(),
        *_objects(),
        *_config(),
        *_planning(),
        *_operation(traffic, document),
    )


def _jobs() -> tuple[Route, ...]:
    submission: dict[str, Any] = {
        "takes": Kind.JSON,
        "body": contract.JobSubmission,
        "max_body": 16 * MIB,
    }
    return (
        _route(
            "POST",
            "jobs",
            "submit",
            "Submit a job",
            jobs.submit,
            **submission,
            returns=contract.Job,
            statuses={201: "Accepted and on disk.", 200: "A repeat by key: the first job."},
        ),
        _route(
            "POST",
            "preview",
            "preview",
            "Say what would happen to a submission now",
            jobs.preview,
            **submission,
            returns=contract.Preview,
        ),
        _route(
            "GET",
            "jobs",
            "jobs",
            "List jobs, newest first",
            jobs.list_jobs,
            query=jobs.JobsQuery,
            returns=list[contract.Job],
        ),
        _route(
            "GET",
            "jobs/{job}",
            "job",
            "Read a job and its attempts",
            jobs.show,
            returns=contract.JobDetail,
        ),
        _route(
            "GET", "jobs/{job}/why", "why", "Ask why a job waits", jobs.why, returns=contract.Why
        ),
        _route(
            "GET",
            "jobs/{job}/submission",
            "submission",
            "Read back what was submitted",
            jobs.submission,
            returns=contract.JobSubmission,
        ),
        *(
            _route(
                "POST",
                f"jobs/{{job}}/{name}",
                name,
                summary,
                handle,
                takes=Kind.JSON,
                body=contract.ActionReason,
                returns=contract.Job,
            )
            for name, summary, handle in (
                ("pause", "Pause a job until it is resumed", jobs.pause),
                ("resume", "Queue a paused job again", jobs.resume),
                ("cancel", "End a job for good", jobs.cancel),
            )
        ),
        _route(
            "POST",
            "jobs/{job}/change",
            "change",
            "Give an accepted job another priority, other workers, or both",
            jobs.change,
            takes=Kind.JSON,
            body=contract.JobChange,
            returns=contract.Job,
        ),
    )


def _logs(timing: Timing) -> tuple[Route, ...]:
    return (
        _route(
            "GET",
            "jobs/{job}/logs",
            "log",
            "Read bytes of a log",
            logs.read,
            query=logs.LogQuery,
            gives=Kind.TEXT,
        ),
        _route(
            "GET",
            "jobs/{job}/results",
            "results",
            "Read bytes of results that were sent because no folder could take them, as tar",
            logs.results,
            query=logs.ResultsQuery,
            gives=Kind.BYTES,
        ),
        _route(
            "GET",
            "jobs/{job}/logs/stream",
            "log_stream",
            "Follow a log",
            partial(logs.follow, timing=timing),
            query=logs.FollowQuery,
            gives=Kind.EVENTS,
            events={"log": contract.LogText, "end": contract.LogEnd},
        ),
    )


def _pool(timing: Timing) -> tuple[Route, ...]:
    return (
        _route(
            "GET",
            "events",
            "event_stream",
            "Follow what happens",
            partial(views.events, timing=timing),
            query=views.EventsQuery,
            gives=Kind.EVENTS,
            events={
                "job": contract.Job,
                "pool": contract.PoolNow,
                "deleted": contract.JobDeleted,
                "reset": dict[str, Any],
            },
        ),
        _route(
            "GET",
            "quota",
            "quota",
            "Read build quota and projects of a user",
            views.quota,
            query=views.UserQuery,
            returns=contract.Quota,
        ),
        _route(
            "GET",
            "status",
            "status",
            "Read the pool in one object",
            views.status,
            query=views.StatusQuery,
            returns=contract.Status,
        ),
    )


def _leases() -> tuple[Route, ...]:
    return (
        _route(
            "POST",
            "leases",
            "reserve",
            "Hold build GPUs for a server",
            leases.reserve,
            who=Who.OPERATOR,
            takes=Kind.JSON,
            body=contract.LeaseRequest,
            returns=contract.Lease,
            statuses={201: "Held."},
        ),
        _route(
            "POST",
            "leases/line",
            "wait_in_line",
            "Hold build GPUs for a server, or its place in line",
            leases.wait_in_line,
            who=Who.OPERATOR,
            takes=Kind.JSON,
            body=contract.LineRequest,
            returns=contract.LineAnswer,
            statuses={201: "Held.", 202: "In line; asking again keeps the place."},
        ),
        _route(
            "GET",
            "leases/line",
            "line",
            "List who waits in line for build GPUs",
            leases.list_line,
            returns=list[contract.InLine],
        ),
        _route(
            "GET",
            "leases",
            "leases",
            "List leases",
            leases.list_leases,
            who=Who.OPERATOR,
            query=views.UserQuery,
            returns=list[contract.Lease],
        ),
        _route(
            "DELETE",
            "leases/{lease}",
            "release",
            "Give a lease back, or leave the line",
            leases.release,
            who=Who.OPERATOR,
            statuses={204: "Given back, or gone already."},
        ),
    )


def _objects() -> tuple[Route, ...]:
    return (
        _route(
            "POST",
            "objects/missing",
            "missing_objects",
            "Ask which contents to upload",
            objects.missing,
            takes=Kind.JSON,
            body=contract.Missing,
            max_body=16 * MIB,
            returns=contract.Missing,
        ),
        _route(
            "PUT",
            "objects/{sha256}",
            "put_object",
            "Upload a content",
            objects.put,
            takes=Kind.BYTES,
            max_body=FILE_LIMIT,
            receive=objects.receive,
            statuses={204: "Kept."},
        ),
    )


def _config() -> tuple[Route, ...]:
    return (
        _route(
            "POST",
            "config/check",
            "check_config",
            "Say what a benchpool.yaml would change",
            configuration.check,
            who=Who.ADMIN,
            takes=Kind.YAML,
            max_body=MIB,
            returns=contract.ConfigurationChange,
        ),
        _route(
            "POST",
            "config/apply",
            "apply_config",
            "Put a benchpool.yaml in force",
            configuration.apply,
            who=Who.ADMIN,
            takes=Kind.YAML,
            max_body=MIB,
            returns=contract.ConfigurationChange,
        ),
    )


def _planning() -> tuple[Route, ...]:
    return (
        _route(
            "POST",
            "whatif",
            "whatif",
            "Say who would run, wait and pay with another benchpool.yaml or more GPUs",
            planning.whatif,
            who=Who.ADMIN,
            takes=Kind.JSON,
            body=contract.WhatIfQuestion,
            max_body=2 * MIB,
            returns=contract.WhatIf,
        ),
        _route(
            "GET",
            "history",
            "history",
            "Read what ran and ended as a trace to replay",
            planning.history,
            who=Who.ADMIN,
            query=planning.HistoryQuery,
            gives=Kind.CSV,
        ),
    )


def _operation(traffic: Traffic, document: bytes) -> tuple[Route, ...]:
    return (
        _route(
            "GET",
            "health",
            "health",
            "Say that the service answers",
            operation.health,
            who=Who.ANYBODY,
            returns=contract.Liveness,
        ),
        _route(
            "GET",
            "openapi.json",
            "openapi",
            "Read this document",
            partial(operation.describe, document=document),
            returns=dict[str, Any],
        ),
        _route(
            "GET",
            "metrics",
            "metrics",
            "Read all figures in Prometheus' format",
            partial(operation.figures, traffic=traffic),
            who=Who.OPERATOR,
            gives=Kind.TEXT,
        ),
    )


def _route(
    method: str,
    path: str,
    name: str,
    summary: str,
    handle: Handle,
    *,
    who: Who = Who.CALLER,
    **rest: Any,
) -> Route:
    return Route(method, path, name, summary, who, handle, **rest)
