"""What every request at the gate does, whatever becomes of it: refusing, cutting, letting go."""

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
"""Bytes of one upload; it is kept nowhere."""
LINGER_S = 5.0
"""What still comes of a body after the answer is read for so long, so that its sender sees it."""
MOST_LINGERING = 64
"""When so many are read and thrown away, the connections of others are closed with the answer."""


class GateTransport(RequestHandler):
    """A request at the gate with all that is held for it.

    Attributes:
        gone: Set when nobody waits for the answer any more.
    """

    def initialize(self, desk: GateDesk) -> None:
        """Take what the gate gives every request."""
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
        """Say nothing of Tornado."""
        self.clear_header("Server")

    def _begin_own(self, status: int) -> None:
        """Begin an answer of the gate itself, with which the connection ends.

        Tornado closes one whose request was answered before it was read. A proxy that is not told
        sends its next request into it, and that is lost.
        """
        self.clear()
        self.set_status(status)
        self.set_header("Connection", "close")
        for name, value in refusals.HEADERS.items():
            self.set_header(name, value)

    def check_xsrf_cookie(self) -> None:
        """Leave it to ``visitors``, which every request has passed before its session counts."""

    def get_argument(self, name: str, default: Any = None, strip: bool = True) -> Any:
        """Return the default: parameters are the program's, and a token in one is not taken."""
        return default

    def compute_etag(self) -> str | None:
        """Return None: what is said of an answer is the program's own."""
        return None

    def _has_body(self) -> bool:
        headers = self.request.headers
        return headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers

    def _allow(self, size: int, seconds: float) -> None:
        connection: Any = self.request.connection
        connection.set_max_body_size(size)
        connection.set_body_timeout(seconds)

    def _refuse(self, error: BenchpoolError, route: ServiceRoute | None = None) -> None:
        """Answer with a refusal; the rest of a body is thrown away for a moment.

        A connection that is closed while its other side sends loses the answer.
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
        """Close both connections at once, so that nobody takes what has come for the whole."""
        if self._exchange is not None:
            self._exchange.abort()
        self.gone.set()
        connection: Any = self.request.connection
        if connection.stream is not None:
            connection.stream.close()
        self._let_go()

    def _let_go(self) -> None:
        """Release what is held of the request; harmless when repeated."""
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
            "The gate has a fault in answering this; the scheduler's log has the details under "
            f"{reference}: please report it.",
            numbers={"reference": reference},
        )

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer what Tornado itself refuses in the same form."""
        failed = kwargs.get("exc_info", (None, None, None))[1]
        if failed is None and status_code == 500:  # so Tornado ends a handler that was cancelled
            failed = Unavailable("The scheduler is stopping: try again in a few seconds.")
        self._refused = False
        self._refuse(self._as_error(failed or HTTPError(status_code)))
        self._finish_once()

    def on_connection_close(self) -> None:
        """End the replica's side when the client has gone."""
        super().on_connection_close()
        self.gone.set()
        if self._exchange is not None:
            self._exchange.abort()
        self._end()

    def on_finish(self) -> None:
        """Let go, unless the connections go on as a websocket."""
        self._end()

    def _end(self) -> None:
        if self._exchange is None or self._exchange.upgraded is None:
            self._let_go()
