"""The gate's own answers: a page for a browser, an error object for a program."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
from tornado.web import RequestHandler

from benchpool_scheduler.errors import BenchpoolError, Unavailable
from benchpool_scheduler.gate import waiting
from benchpool_scheduler.gate.desk import GateDesk
from benchpool_scheduler.gate.directory import ServiceRoute
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web import pages
from benchpool_scheduler.web.job_rows import Reader
from benchpool_scheduler.web.words import moment

HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": pages.POLICY,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of the gate's own answers; those of a program have their own."""


class BadGateway(Unavailable):
    """A replica refuses the connection, or closes it without an answer."""

    http_status = 502
    default_code = "service-broken"


class GatewayTimeout(Unavailable):
    """A replica does not begin its answer in time."""

    http_status = 504
    default_code = "service-silent"


def as_json(handler: RequestHandler, error: BenchpoolError) -> bytes:
    """Return the error object as JSON, and set its content type."""
    handler.set_header("Content-Type", "application/json; charset=utf-8")
    return msgspec.json.encode(error.as_json())


def as_page(
    handler: RequestHandler,
    desk: GateDesk,
    caller: Caller | None,
    error: BenchpoolError,
    route: ServiceRoute | None,
) -> bytes:
    """Return an error page; with a route it reloads when the service answers."""
    handler.set_header("Content-Type", "text/html; charset=utf-8")
    now = datetime.now(UTC)
    page = pages.PageFacts(
        root=desk.prefix,
        hub=desk.hub_prefix,
        xsrf=desk.identity.xsrf_token(handler) if caller is not None and route is not None else "",
        reader=None if caller is None else Reader(caller.name, caller.admin),
        now=moment(now, now),
    )
    if route is None:
        text = pages.TEMPLATES.get_template("error.html").render(
            page=page,
            status=error.http_status,
            heading=pages.HEADINGS.get(error.http_status, "The service does not answer"),
            message=error.message,
        )
    else:
        text = pages.TEMPLATES.get_template("service_waiting.html").render(
            page=page,
            name=route.name,
            state=route.state.value,
            heading=waiting.HEADINGS[route.state],
            sentence=waiting.sentence(route),
            seen=waiting.fingerprint(route),
        )
    return text.encode()
