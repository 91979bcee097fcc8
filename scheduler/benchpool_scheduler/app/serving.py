"""HTTP side of the process: one server with an exchangeable application, and its secrets."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.routing import URLSpec
from tornado.web import Application, RequestHandler

from benchpool_scheduler import web
from benchpool_scheduler.api import Api, HubIdentity
from benchpool_scheduler.app.request_origin import RequestOrigins
from benchpool_scheduler.app.settings import variable
from benchpool_scheduler.contract.operation import KIB
from benchpool_scheduler.service import Pool

log = logging.getLogger("benchpool_scheduler")

END_PATIENCE_S = 5.0


class Front(HTTPServerConnectionDelegate):
    """Passes each request to the current application, and sets its origin."""

    def __init__(self, application: Application, origins: RequestOrigins | None = None) -> None:
        self.application = application
        self.origins = origins or RequestOrigins()

    def start_request(
        self, server_conn: object, request_conn: HTTPConnection
    ) -> HTTPMessageDelegate:
        """Start a request, before its first byte arrives."""
        return _Late(self, server_conn, request_conn)


class _Late(HTTPMessageDelegate):
    """Selects the application when a request arrives.

    A connection that is kept alive may wait indefinitely for its next request.
    """

    def __init__(self, front: Front, server: object, connection: HTTPConnection) -> None:
        self._front, self._server, self._connection = front, server, connection
        self._chosen: HTTPMessageDelegate | None = None
        context: Any = connection.context  # type: ignore[attr-defined]
        self._context = context
        self._peer: tuple[str, str] = (context.remote_ip, context.protocol)

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        origin = self._front.origins.of(*self._peer, headers)
        self._context.remote_ip, self._context.protocol = origin.address, origin.scheme
        application = self._front.application
        self._chosen = application.start_request(self._server, self._connection)
        return self._chosen.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return None if self._chosen is None else self._chosen.data_received(chunk)

    def finish(self) -> None:
        if self._chosen is not None:
            self._chosen.finish()
        self._forget()

    def on_connection_close(self) -> None:
        if self._chosen is not None:
            self._chosen.on_connection_close()
        self._forget()

    def _forget(self) -> None:
        """Restore the connection's peer: its next request may have another origin."""
        self._context.remote_ip, self._context.protocol = self._peer


def http_server(front: Front) -> HTTPServer:
    """Return the server, which does not listen yet. Only ``front`` evaluates proxy headers.

    Handlers raise the limits of size and time after they have identified the sender.
    """
    return HTTPServer(
        front,
        max_body_size=64 * KIB,
        max_header_size=64 * KIB,
        body_timeout=20,
        idle_connection_timeout=120,
    )


def application(rules: list[Any], cookies: bytes) -> Application:
    """Return an application with these rules.

    The XSRF cookie is hidden from scripts. Pages contain the token, and a script of a user's
    service, with an address below the scheduler's, could read the cookie.
    """
    options = json.loads(variable("JUPYTERHUB_COOKIE_OPTIONS", "{}"))
    return Application(
        rules,
        cookie_secret=cookies,
        xsrf_cookie_kwargs={**options, "httponly": True},
        log_function=log_request,
        compress_response=False,
    )


def rules_of(
    pool: Pool, api: Api, identity: HubIdentity, prefix: str, gate: Sequence[URLSpec] = ()
) -> list[Any]:
    """Return the rules of API and pages. ``gate``: rules of users' services, if any."""
    return [
        *api.rules(prefix),
        *identity.routes(),
        *gate,
        *web.routes(pool, identity, prefix=prefix, hub_prefix=hub_prefix()),
    ]


def hub_prefix() -> str:
    """Return the address prefix of the Hub's own pages."""
    return variable("JUPYTERHUB_BASE_URL", "/") + "hub/"


def cookie_secret(path: Path) -> bytes:
    """Return the secret that signs cookies. It is stored, so sessions survive a restart."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        known = path.read_bytes()
        if len(known) >= 32:
            return known
        path.unlink()  # a crash left it incomplete
        return cookie_secret(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))
    return path.read_bytes()


def log_request(handler: RequestHandler) -> None:
    """Log the answered request without its query, which may contain tokens."""
    request, status = handler.request, handler.get_status()
    level = logging.WARNING if status >= 500 else logging.DEBUG
    log.log(level, "%d %s %s %.0f ms", status, request.method, request.path,
            1000 * request.request_time())  # fmt: skip


async def within(seconds: float, work: Awaitable[Any]) -> None:
    """Wait for ``work``, at most ``seconds``."""
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        log.warning("closing connections that stayed open for %s s", seconds)
