"""Relay of a websocket from a standby replica to the leader, as one connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any
from urllib.parse import urlsplit

from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError
from tornado.web import RequestHandler

from benchpool_scheduler.gate import tunnel
from benchpool_scheduler.gate.backend_connections import BackendConnections
from benchpool_scheduler.gate.directory import Backend
from benchpool_scheduler.gate.exchange import Exchange


class SocketRelay:
    """Relay of one websocket request and the leader's answer.

    Args:
        handler: Handler of the request, which has no body.
    """

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler

    async def ask(self, url: str, headers: HTTPHeaders) -> bool:
        """Forward the request to the leader. Return whether an answer began.

        If it returns False, nothing was sent to the client. Errors: ConnectionRefused.
        """
        where, request = urlsplit(url), self._handler.request
        leader = Backend("leader", where.hostname or "", where.port or 80)
        exchange = Exchange(await BackendConnections().get(leader, fresh=True), self)
        headers["Connection"], headers["Upgrade"] = "Upgrade", "websocket"
        try:
            exchange.ask("GET", request.uri or "/", headers)
            exchange.end_body()
            await exchange.answer()
            if exchange.upgraded is not None:
                await self._join(exchange)
            elif exchange.whole:
                self._handler.finish()
            elif exchange.began:
                self._cut()  # a partial answer must not look like a complete one
            return exchange.began
        finally:
            exchange.abort()
            if exchange.upgraded is not None:
                exchange.upgraded.close()

    def begins(self, status: int, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Send status and headers of the leader's answer."""
        self._handler.set_status(status)
        self._handler.clear_header("Content-Type")
        for name, value in headers.get_all():
            if name.lower() not in ("transfer-encoding", "keep-alive"):
                self._handler.add_header(name, value)
        return self._handler.flush()

    def receives(self, chunk: bytes) -> Awaitable[None] | None:
        """Send a chunk of the answer."""
        self._handler.write(chunk)
        return self._handler.flush()

    async def _join(self, exchange: Exchange) -> None:
        if exchange.upgraded is None:
            raise AssertionError("the leader has changed the protocol")
        try:
            self._handler.finish()
            stream = self._handler.detach()
        except StreamClosedError:
            return
        stream.set_close_callback(None)
        await tunnel.join(stream, exchange.upgraded)

    def _cut(self) -> None:
        connection: Any = self._handler.request.connection
        connection.stream.close()
