"""The one handler of the gate: authenticate, find the service, forward request and answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable
from typing import Any

from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError
from tornado.web import Finish, stream_request_body

from benchpool_scheduler.errors import (
    BenchpoolError,
    Forbidden,
    InvalidInput,
    NotAuthenticated,
    Unavailable,
)
from benchpool_scheduler.gate import (
    balancing,
    request_headers,
    response_headers,
    tunnel,
    visitors,
    waiting,
)
from benchpool_scheduler.gate.backend_connections import ConnectionRefused
from benchpool_scheduler.gate.desk import GateDesk
from benchpool_scheduler.gate.directory import Backend, ServiceRoute
from benchpool_scheduler.gate.exchange import Exchange
from benchpool_scheduler.gate.locations import ServiceAddress, target
from benchpool_scheduler.gate.refusals import BadGateway, GatewayTimeout
from benchpool_scheduler.gate.transport import LARGEST, LINGER_S, GateTransport
from benchpool_scheduler.service import Caller

log = logging.getLogger(__name__)

SLOW_READER_S = 120.0
"""Timeout after which a client that reads nothing of its answer is disconnected, in seconds."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@stream_request_body
class GateHandler(GateTransport):
    """Handler for all methods and addresses of all services."""

    def initialize(self, desk: GateDesk) -> None:
        """Set the shared state of the gate."""
        super().initialize(desk)
        self._answering: asyncio.Task[None] | None = None
        self._place: ServiceAddress | None = None
        self._looking: asyncio.Task[None] | None = None
        self._tunnelled = False
        self._began = desk.now()

    # ------------------------------------------------------------------ the request

    async def prepare(self) -> None:
        """Accept a request, and send its head to a replica before its body is read."""
        connection: Any = self.request.connection
        connection.stream.set_close_callback(self.on_connection_close)
        try:
            await self._come_in(self.path_args[0])
        except Finish:
            raise
        except Exception as failed:
            self._refuse(self._as_error(failed))

    async def _come_in(self, name: str) -> None:
        request, desk = self.request, self._desk
        method, uri = request.method or "", request.uri or ""
        self.path_args = []
        caller = self._caller = await self._identified(method)
        desk.limits.request(caller)
        self._held.enter_context(desk.place_of(caller, self.gone))
        fault = request_headers.framing_fault(method, request.headers)
        if fault is not None or not uri.isascii():
            raise InvalidInput(
                f"The request cannot be forwarded: {fault or 'its address is not ASCII'}.",
                code="malformed",
            )
        wait_s = waiting.wait_s(request.headers.get("Prefer", ""))
        route = await waiting.held(desk.directory, desk.figures, name, caller, self.gone, wait_s)
        base = f"{desk.prefix}s/{name}"
        if uri.partition("?")[0] == base:
            self._to_the_slash(uri, base)
        if not waiting.answers(route):
            self._refuse(waiting.not_yet(route), route)
            return
        if self._has_body():
            self._admit_body(caller)
        await self._reach(route, base, method, caller)

    async def _identified(self, method: str) -> Caller:
        headers = self.request.headers
        opens = visitors.opens_page(method, headers)
        visitors.refuse_other_sites(
            method, headers, self.request.host, websocket=self._wants_websocket()
        )
        try:
            caller = await self._desk.identity.authenticate(self)
        except Forbidden as refused:
            if refused.code != "xsrf" or not opens:
                raise
            caller = None  # the session has ended: log in again
        if caller is not None:
            return caller
        if opens:
            self._begin_own(302)
            self.redirect(self._desk.identity.login_url(self))
            raise Finish
        raise NotAuthenticated(
            "This needs a token of the Hub. Get one on the Hub's token page and send it as "
            "`Authorization: token …` or `Authorization: Bearer …`."
        )

    def _to_the_slash(self, uri: str, base: str) -> None:
        self._begin_own(307)
        self.set_header("Location", f"{base}/{uri[len(base) :]}")
        self._refused = True
        self.finish()
        raise Finish

    async def _reach(self, route: ServiceRoute, base: str, method: str, caller: Caller) -> None:
        """Send the head of the request to a replica, or to another one if the first refuses."""
        refused: list[str] = []
        why = ""
        while len(refused) < 2:
            figures = self._desk.figures
            backend = balancing.choose(
                route.backends, figures.by_backend, figures.turns, refused=refused
            )
            if backend is None:
                break
            place = ServiceAddress(
                base, self.request.host, (backend.host, backend.port), route.keep_prefix
            )
            counted = self._held.enter_context(contextlib.ExitStack())
            counted.callback(self._count, route.name, backend)
            figures.begin(route.name, backend.id)
            try:
                await self._send_head(backend, place, method, caller)
            except ConnectionRefused as failed:
                counted.close()
                refused.append(backend.id)
                why = str(failed)
                continue
            return
        log.warning(
            "service %s: %d replicas take no connection (%s)", route.name, len(refused), why
        )
        raise BadGateway(
            f"{route.name} takes no connection, although it was ready ({len(refused)} of "
            f"{len(route.backends)} replicas tried). Try again in a few seconds. If this persists, "
            "check its log.",
            numbers={"tried": len(refused), "retry_after_s": 2},
        )

    def _count(self, name: str, backend: Backend) -> None:
        exchange = self._exchange
        answered = (
            exchange is not None and exchange.whole and exchange.connection.backend == backend
        )
        took_s = self._desk.now() - self._began if answered else None
        self._desk.figures.end(name, backend.id, took_s)

    async def _send_head(
        self,
        backend: Backend,
        place: ServiceAddress,
        method: str,
        caller: Caller,
        *,
        fresh: bool = False,
    ) -> None:
        has_body = self._has_body()
        fresh = fresh or has_body or method not in SAFE or self._wants_websocket()
        connection = await self._desk.connections.get(backend, fresh=fresh)
        if self.gone.is_set():
            connection.close()
            raise StreamClosedError
        came, scheme, peer = self.request.headers, self.request.protocol, self.request.remote_ip
        facts = request_headers.RequestFacts(caller.name, scheme, peer or "", secrets.token_hex(8))
        headers = request_headers.for_program(came, place, facts, self._desk.hidden)
        if self._wants_websocket():
            headers["Connection"], headers["Upgrade"] = "Upgrade", "websocket"
        elif has_body and "Content-Length" in self.request.headers:
            headers["Content-Length"] = self.request.headers["Content-Length"]
        elif not has_body and method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = "0"
        self._place = place
        self._exchange = exchange = Exchange(connection, self)
        exchange.ask(method, target(self.request.uri or "", place), headers)
        if has_body:
            self._answering = asyncio.create_task(exchange.answer())
            self._answering.add_done_callback(self._answered)
        else:
            exchange.end_body()

    def _wants_websocket(self) -> bool:
        return self.request.headers.get("Upgrade", "").lower() == "websocket"

    def _admit_body(self, caller: Caller) -> None:
        bodies = self._desk.bodies
        self._body = bodies.admit(caller.name, 0)
        self._body.watch(self._refuse)
        self._allow(LARGEST, bodies.bounds.longest_s(LARGEST))

    async def data_received(self, chunk: bytes) -> None:
        """Forward bytes of the body, at the speed of the replica."""
        if self._refused or self._exchange is None or self._body is None:
            return
        self._body.passed(len(chunk))
        sending = asyncio.ensure_future(self._exchange.send(chunk))
        while not sending.done():
            await asyncio.wait({sending}, timeout=self._desk.bodies.bounds.patience_s / 4)
            if not sending.done():  # the replica is slow, not the sender
                bounds = self._desk.bodies.bounds
                self._body.passed(int(bounds.least_per_s * bounds.patience_s))

    # ------------------------------------------------------------------ the answer

    async def _serve(self) -> None:
        """Answer, once the request is complete."""
        if self._refused:
            self._finish_once()
            return
        exchange = self._exchange
        if exchange is None:
            return  # the client has gone
        self._watch_again()
        exchange.end_body()
        if self._body is not None:
            self._body.whole()
        if self._answering is not None:
            await self._answering
        else:
            await exchange.answer()
            exchange = await self._once_more(exchange)
        if exchange.upgraded is not None and not self.gone.is_set():
            await self._join(exchange)
        else:
            self._conclude(exchange)

    get = head = post = put = patch = delete = options = _serve

    async def _once_more(self, exchange: Exchange) -> Exchange:
        """Retry the request if the replica had just closed a kept connection."""
        if exchange.began or not exchange.connection.reused or self.gone.is_set():
            return exchange
        if self._place is None or self._caller is None:
            raise AssertionError("its head was sent")
        with contextlib.suppress(ConnectionRefused):
            await self._send_head(
                exchange.connection.backend,
                self._place,
                self.request.method or "",
                self._caller,
                fresh=True,
            )
            exchange = self._exchange or exchange
            await exchange.answer()
        return exchange

    def begins(self, status: int, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Send status and headers of the program's answer."""
        if self._finished or self._headers_written or self._place is None:
            return None
        asked = target(self.request.uri or "", self._place).removeprefix(
            self._place.base if self._place.keep_prefix else ""
        )
        sent = response_headers.for_browser(headers, asked, self._place, self._desk.hidden)
        self.set_status(status)
        self.clear_header("Content-Type")
        if "Date" in sent:
            self.clear_header("Date")
        for name, value in sent.get_all():
            self.add_header(name, value)
        if status == 101:
            self.set_header("Connection", "Upgrade")
            self.set_header("Upgrade", "websocket")
        elif status == 204:
            self.clear_header("Content-Length")
        connection: Any = self.request.connection
        connection.stream.set_nodelay(True)
        return self._passed(self.flush())

    def receives(self, chunk: bytes) -> Awaitable[None] | None:
        """Send bytes of the program's answer."""
        if self._finished or self._refused:
            return None
        self.write(chunk)
        return self._passed(self.flush())

    def _passed(self, flushing: asyncio.Future[None]) -> Awaitable[None] | None:
        if flushing.done() and flushing.exception() is None:
            return None
        return self._taken(flushing)

    async def _taken(self, flushing: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(SLOW_READER_S):
                await flushing
        except (StreamClosedError, TimeoutError):
            self._cut()

    def _answered(self, answering: asyncio.Task[None]) -> None:
        """Handle an answer that ended before the request body: read on for a moment."""
        if answering.cancelled() or self._finished or self._lingering is not None:
            return
        if self._exchange is not None:
            loop, seconds = asyncio.get_running_loop(), LINGER_S if self._exchange.whole else 0.0
            self._lingering = loop.call_later(seconds, self._conclude, self._exchange)

    def _conclude(self, exchange: Exchange) -> None:
        if self._finished:
            return
        if exchange.whole:
            if exchange.reusable:
                self._desk.connections.keep(exchange.connection)
            else:
                exchange.abort()
            self.finish()
        elif exchange.began or self.gone.is_set():
            self._cut()  # so that the client notices the missing part
        else:
            self._refuse(self._no_answer(exchange))

    def _no_answer(self, exchange: Exchange) -> BenchpoolError:
        name = exchange.connection.backend.id
        if exchange.late:
            return GatewayTimeout(
                f"The service began no answer within an hour (replica {name}). Request less at "
                "once, or check its log.",
            )
        return BadGateway(
            f"The service closed the connection without an answer (replica {name}). Its log shows "
            "whether it has stopped.",
            numbers={"retry_after_s": 2},
        )

    async def _join(self, exchange: Exchange) -> None:
        """Join two connections into one."""
        backend = exchange.upgraded
        if backend is None:
            raise AssertionError("the replica has changed the protocol")
        try:
            await self.flush()
            self.finish()
            stream = self.detach()
        except StreamClosedError:
            backend.close()
            return
        stream.set_close_callback(None)
        self._tunnelled = True
        joined = asyncio.ensure_future(tunnel.join(stream, backend))
        left = asyncio.ensure_future(self.gone.wait())
        try:
            await asyncio.wait({joined, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stream.close()
            backend.close()
            left.cancel()
            await joined
            self._tunnelled = False
            self._let_go()

    def _watch_again(self) -> None:
        seconds = self._desk.timing.recheck_of(len(self._desk.under_way))
        self._watch = asyncio.get_running_loop().call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        self._looking = asyncio.create_task(self._still_allowed())

    async def _still_allowed(self) -> None:
        """Disconnect a caller that has lost access while a request is open."""
        name = self._place.base.rpartition("/")[2] if self._place else ""
        same = False
        try:
            caller = await self._desk.identity.authenticate(self, fresh=True)
            if caller is not None and self._caller is not None:
                self._desk.directory.route(name, caller)
                same = (caller.kind, caller.name) == (self._caller.kind, self._caller.name)
        except Unavailable:
            same = True  # the Hub is unavailable: cutting would end all users' work
        except BenchpoolError:
            same = False
        if self.gone.is_set() or (self._finished and not self._tunnelled):
            return
        if same:
            self._watch_again()
        else:
            self._cut()
