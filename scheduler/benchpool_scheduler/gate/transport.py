"""Common tasks of every request at the gate: refusing, disconnecting, releasing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from typing import Any

from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, RequestHandler

from benchpool_scheduler.api.bodies import Body
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, ServerFault, Unavailable
from benchpool_scheduler.gate import refusals, visitors
from benchpool_scheduler.gate.desk import GateDesk
from benchpool_scheduler.gate.directory import ServiceRoute
from benchpool_scheduler.gate.exchange import Exchange
from benchpool_scheduler.service import Caller

log = logging.getLogger(__name__)

LARGEST = 2**40
"""Maximum size of one upload, in bytes; uploads are not stored."""
LINGER_S = 5.0
"""Time for which the rest of a body is read after the answer, in seconds."""
MOST_LINGERING = 64
"""Maximum requests whose rest is read; beyond it, the connection closes with the answer."""


class GateTransport(RequestHandler):
    """A request at the gate, with the resources that it holds.

    Attributes:
        gone: Set when the client no longer waits for the answer.
    """

    def initialize(self, desk: GateDesk) -> None:
        """Set the shared state of the gate."""
        self._desk = desk
        self._held = contextlib.ExitStack()
        self._caller: Caller | None = None
        self._refused = False
        self._body: Body | None = None
        self._exchange: Exchange | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()

    def set_default_headers(self) -> None:
        """Remove Tornado's ``Server`` header."""
        self.clear_header("Server")

    def _begin_own(self, status: int) -> None:
        """Begin an answer of the gate itself, after which the connection is closed.

        Tornado closes a connection if its request was answered before it was read. Without the
        header a proxy would send its next request over it, and that request would be lost.
        """
        self.clear()
        self.set_status(status)
        self.set_header("Connection", "close")
        for name, value in refusals.HEADERS.items():
            self.set_header(name, value)

    def check_xsrf_cookie(self) -> None:
        """Skip Tornado's check, since ``visitors`` checks every request with a session."""

    def get_argument(self, name: str, default: Any = None, strip: bool = True) -> Any:
        """Return the default: parameters are the program's, and a token in one is not accepted."""
        return default

    def compute_etag(self) -> str | None:
        """Return None: validators of an answer are the program's own."""
        return None

    def _has_body(self) -> bool:
        headers = self.request.headers
        return headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers

    def _allow(self, size: int, seconds: float) -> None:
        connection: Any = self.request.connection
        connection.set_max_body_size(size)
        connection.set_body_timeout(seconds)

    def _refuse(self, error: BenchpoolError, route: ServiceRoute | None = None) -> None:
        """Answer with a refusal, and discard the rest of a body for a moment.

        If the connection were closed while the client sends, the client would lose the answer.
        """
        if self._exchange is not None:
            self._exchange.abort()
        if self._finished or self._refused:
            return
        self._refused = True
        if self._headers_written:
            self._cut()
            return
        self._begin_own(error.http_status)
        if "retry_after_s" in error.numbers or isinstance(error, Unavailable):
            self.set_header("Retry-After", str(error.numbers.get("retry_after_s", 1)))
        if visitors.opens_page(self.request.method or "", self.request.headers):
            data = refusals.as_page(self, self._desk, self._caller, error, route)
        else:
            data = refusals.as_json(self, error)
        self.set_header("Content-Length", str(len(data)))
        if not self._has_body():
            self.finish(data)
            return
        bodies = self._desk.bodies
        if "Expect" in self.request.headers or bodies.lingering >= MOST_LINGERING:
            self.finish(data)
            return
        self._allow(LARGEST, 2 * LINGER_S)
        self.write(data)
        self.flush()
        bodies.lingering += 1
        self._held.callback(self._lingers_no_more)
        self._lingering = asyncio.get_running_loop().call_later(LINGER_S, self._finish_once)

    def _lingers_no_more(self) -> None:
        self._desk.bodies.lingering -= 1

    def _finish_once(self) -> None:
        if not self._finished:
            self.finish()

    def _cut(self) -> None:
        """Close both connections immediately, so that no partial answer looks complete."""
        if self._exchange is not None:
            self._exchange.abort()
        self.gone.set()
        connection: Any = self.request.connection
        if connection.stream is not None:
            connection.stream.close()
        self._let_go()

    def _let_go(self) -> None:
        """Release the resources of the request; harmless when repeated."""
        if self._body is not None:
            self._body.let_go()
        for timer in (self._lingering, self._watch):
            if timer is not None:
                timer.cancel()
        self._held.close()

    def _as_error(self, failed: BaseException) -> BenchpoolError:
        if isinstance(failed, BenchpoolError):
            return failed
        if isinstance(failed, HTTPError) and failed.status_code < 500:
            why = failed.log_message or failed.reason or failed.status_code
            return InvalidInput(f"The request cannot be read ({why}).", code="malformed")
        if isinstance(failed, StreamClosedError):
            return Unavailable("The connection was closed.")
        reference = secrets.token_hex(4)
        log.error("fault %s at the gate, %s", reference, self.request.path, exc_info=failed)
        return ServerFault(
            "The gate failed to answer this request. The scheduler's log has the details under "
            f"{reference}. Please report it.",
            numbers={"reference": reference},
        )

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send Tornado's own errors in the same form."""
        failed = kwargs.get("exc_info", (None, None, None))[1]
        if failed is None and status_code == 500:  # Tornado ends a cancelled handler this way
            failed = Unavailable("The scheduler is stopping. Try again in a few seconds.")
        self._refused = False
        self._refuse(self._as_error(failed or HTTPError(status_code)))
        self._finish_once()

    def on_connection_close(self) -> None:
        """Close the replica's side when the client has disconnected."""
        super().on_connection_close()
        self.gone.set()
        if self._exchange is not None:
            self._exchange.abort()
        self._end()

    def on_finish(self) -> None:
        """Release the resources, unless the connections continue as a websocket."""
        self._end()

    def _end(self) -> None:
        if self._exchange is None or self._exchange.upgraded is None:
            self._let_go()
