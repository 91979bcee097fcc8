"""One request to a replica and its answer, both streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from tornado.http1connection import HTTP1Connection
from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    HTTPOutputError,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream, StreamClosedError, UnsatisfiableReadError

from benchpool_scheduler.gate.backend_connections import BackendConnection

ANSWER_S = 3600.0
"""Timeout for the begin of an answer after the request was sent, in seconds."""


class AnswerTaker(Protocol):
    """Receiver of an answer; its results are awaited before the next read from the replica."""

    def begins(self, status: int, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Receive status and headers, once."""

    def receives(self, chunk: bytes) -> Awaitable[None] | None:
        """Receive bytes of the body."""


class Exchange(HTTPMessageDelegate):
    """A request on a connection of its own, and its answer.

    Attributes:
        began: Whether the answer has begun; ``whole``: whether it is complete.
        late: Whether it did not begin in time.
        upgraded: The connection, after the replica has switched to the requested protocol.
    """

    def __init__(self, connection: BackendConnection, taker: AnswerTaker) -> None:
        self.connection = connection
        self.began = self.whole = self.late = False
        self.upgraded: IOStream | None = None
        self._taker = taker
        self._http: HTTP1Connection = connection.http()
        self._upgrades = False
        self._sent = False
        self._stays = False
        self._waiting: asyncio.TimerHandle | None = None

    def ask(self, method: str, target: str, headers: HTTPHeaders) -> None:
        """Send the head of the request."""
        self._upgrades = "Upgrade" in headers
        self._http.write_headers(RequestStartLine(method, target, "HTTP/1.1"), headers)

    async def send(self, chunk: bytes) -> bool:
        """Send bytes of the body, and return whether the replica still accepts them."""
        if self.whole or self.connection.stream.closed():
            return False
        try:
            await self._http.write(chunk)
        except (StreamClosedError, HTTPOutputError):
            return False
        return True

    def end_body(self) -> None:
        """Mark the request as complete."""
        if self._sent or self.connection.stream.closed():
            return
        try:
            self._http.finish()
        except HTTPOutputError:  # shorter than announced; its connection is closed
            return
        self._sent = True
        self.connection.stream.set_nodelay(True)
        self._waiting = asyncio.get_running_loop().call_later(ANSWER_S, self._too_late)

    async def answer(self) -> None:
        """Read the answer to its end, regular or not."""
        try:
            await self._http.read_response(self)
        except (StreamClosedError, UnsatisfiableReadError, HTTPInputError):
            self.abort()
        finally:
            self._cancel_timer()

    @property
    def reusable(self) -> bool:
        """Whether the connection can carry another request."""
        return self.whole and self._sent and self._stays and not self.connection.stream.closed()

    def abort(self) -> None:
        """Abort the exchange; harmless when repeated."""
        self._cancel_timer()
        if self.upgraded is None:
            self.connection.close()

    # ------------------------------------------------------------------ the answer

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        if not isinstance(start_line, ResponseStartLine):
            raise HTTPInputError("no answer")
        if start_line.code == 101:
            if not self._upgrades:
                raise HTTPInputError("an upgrade that was not requested")
            self.upgraded = self._http.detach()
        elif start_line.code < 200:
            return None  # an interim response (1xx)
        _one_length(headers)
        self._cancel_timer()
        self.began = True
        closes = "close" in headers.get("Connection", "").lower()
        self._stays = start_line.version == "HTTP/1.1" and not closes
        return self._taker.begins(start_line.code, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._taker.receives(chunk)

    def finish(self) -> None:
        self.whole = True

    def on_connection_close(self) -> None:
        self._cancel_timer()

    def _too_late(self) -> None:
        self.late = True
        self.abort()

    def _cancel_timer(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def _one_length(headers: HTTPHeaders) -> None:
    """Reduce the length of an answer to one value. Errors: HTTPInputError if ambiguous."""
    lengths = {one.strip() for one in headers.get("Content-Length", "").split(",")}
    if "Content-Length" not in headers:
        return
    if len(lengths) > 1 or "Transfer-Encoding" in headers:
        raise HTTPInputError("an answer of ambiguous length")
    headers["Content-Length"] = lengths.pop()
