"""The one Tornado handler of the API: identify, admit, decode, answer, with one error format.

Bodies are streamed: a large body is accepted only after identification, and uploads are never held
in memory. The operations are in ``api.jobs`` and its neighbours.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_origin

import msgspec
from tornado.web import HTTPError, stream_request_body

from benchpool_scheduler.api import audit, callers, decoding
from benchpool_scheduler.api.bodies import Bodies, Body, too_large
from benchpool_scheduler.api.callers import ANONYMOUS, Callers
from benchpool_scheduler.api.decoding import Malformed
from benchpool_scheduler.api.limits import Limits
from benchpool_scheduler.api.metrics import Traffic
from benchpool_scheduler.api.routing import Answer, Request, Route, Sink, Transport, nothing_at
from benchpool_scheduler.contract.operation import KIB, Media
from benchpool_scheduler.errors import (
    BenchpoolError,
    NotFound,
    ServerFault,
    TooMany,
    TooSlow,
    Unavailable,
)
from benchpool_scheduler.service import Caller, Pool

log = logging.getLogger(__name__)

SMALL = 64 * KIB
"""Size up to which a refused body is read before the answer, in bytes."""
MOST_DISCARDED = 2**40
LINGER_S = 5.0
"""Time for discarding a refused body, so that its sender sees the answer, in seconds."""
MOST_LINGERING = 64
"""Number of refused bodies read at a time. Beyond it, connections are closed with the answer."""

HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Service:
    """Objects shared by all endpoints.

    Attributes:
        open_streams: Event streams to end when the service closes.
        under_way: Tasks of the requests in progress.
    """

    pool: Pool
    callers: Callers
    limits: Limits
    traffic: Traffic
    bodies: Bodies
    open_streams: set[asyncio.Event] = field(default_factory=set)
    under_way: set[asyncio.Task[Any] | None] = field(default_factory=set)


class MethodNotThere(NotFound):
    """The address exists, but not with this method."""

    http_status = 405
    default_code = "method"


@stream_request_body
class Endpoint(Transport):
    """Tornado handler for all methods of one address."""

    def initialize(self, routes: Mapping[str, Route], service: Service) -> None:
        self._routes = routes
        self._service = service
        self._route: Route | None = None
        self._caller = ANONYMOUS
        self._request: Request | None = None
        self._refusal: BenchpoolError | None = None
        self._body: Body | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._sink: Sink | None = None
        self.gone = asyncio.Event()

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)

    async def prepare(self) -> None:
        """Identify and admit the caller before the body is read.

        The refusal of a small request waits until its body (up to ``SMALL`` bytes) is read. The
        caller then gets the answer instead of a broken connection.
        """
        size = self._size()
        try:
            self._admit_method()
            caller = await self._identify()
            self._admit_body(size)
            self._count_body(caller, size)
            self._open(caller, size)
        except Exception as failed:
            self._refusal = self._as_error(failed)
        if self._refusal is not None:
            self._refuse_early(self._refusal, size)

    async def data_received(self, chunk: bytes) -> None:
        if self._refusal is not None:
            return
        try:
            if self._sink is not None:
                self._require_body().passed(len(chunk))
                await self._sink.write(chunk)
            else:
                self._collect(chunk)
        except Exception as failed:
            self._refusal = self._as_error(failed)
            self._refuse_early(self._refusal, self._size())

    async def _serve(self, **path: str) -> None:
        task = asyncio.current_task()
        self._service.under_way.add(task)
        try:
            if self._refusal is not None:
                raise self._refusal
            if self._route is None or self._request is None:
                raise AssertionError("prepare either admits or refuses")
            answer = await self._handle(self._route, self._request)
        except Exception as failed:
            self._refuse(self._as_error(failed))
        else:
            if self._route.operation.gives is not Media.EVENTS:
                self._answer(self._route, answer)
        finally:
            self._service.under_way.discard(task)

    get = head = post = put = patch = delete = options = _serve

    async def _handle(self, route: Route, request: Request) -> Answer:
        request = self._with_body(route, request)
        if route.of_history:
            await self._service.pool.whole()
        if route.operation.gives is not Media.EVENTS:
            return await self._ask(route, request)
        streams = self._service.open_streams
        most = self._service.pool.observed.now.configuration.budgets.streams
        with self._service.limits.stream(request.caller, most):
            streams.add(self.gone)
            try:
                return await route.handle(request)
            finally:
                streams.discard(self.gone)

    async def _ask(self, route: Route, request: Request) -> Answer:
        if get_origin(route.operation.answer) is not list:
            return await audit.handled(route, request)
        limits = self._service.limits
        async with limits.listing(request.caller):
            answer = await audit.handled(route, request)
        entries = answer.value if isinstance(answer.value, list) else []
        limits.answered(request.caller, len(entries))
        return answer

    # ------------------------------------------------------------------ admission

    def _admit_method(self) -> None:
        self._route = self._routes.get(self.request.method or "")
        if not self._routes:
            raise nothing_at(self.request.path)
        if self._route is None:
            known = ", ".join(sorted(self._routes))
            raise MethodNotThere(
                f"This address does not support {self.request.method}, only {known}."
            )

    async def _identify(self) -> Caller:
        operation, service = self._require_route().operation, self._service
        self._caller = caller = await service.callers.of(self, operation)
        if caller is not ANONYMOUS:
            service.limits.request(caller)
            callers.refuse_others(operation.who, caller)
        return caller

    def _admit_body(self, size: int) -> None:
        wanted = self._require_route().operation
        if size > wanted.max_body:
            raise too_large(size, wanted.max_body)
        kind = self.request.headers.get("Content-Type", "").split(";")[0].strip().lower()
        if wanted.takes is not None and kind != wanted.takes.value:
            raise Malformed(
                f"The body is {kind or 'of undeclared type'}; it must be {wanted.takes}. Set the "
                "header Content-Type.",
                field="Content-Type",
            )

    def _count_body(self, caller: Caller, size: int) -> None:
        """Admit a body under the limits for bodies in transfer. Errors: TooMany."""
        if not self._has_body(size):
            return
        route, bodies = self._require_route(), self._service.bodies
        in_memory = 0 if route.receive is not None else size
        self._body = bodies.admit(caller.name or "strangers", in_memory)
        self._body.watch(self._cut_off)
        self._allow(route.operation.max_body, bodies.bounds.longest_s(route.operation.max_body))

    def _open(self, caller: Caller, size: int) -> None:
        route, service = self._require_route(), self._service
        pairs = {
            name: [value.decode("utf-8", "replace") for value in values]
            for name, values in self.request.query_arguments.items()
            if name != "_xsrf"
        }
        request = Request(
            caller=caller,
            pool=service.pool,
            identity=service.callers.identity,
            path=self.path_kwargs,
            query=decoding.query(pairs, route.operation.query),
            body=None,
            transport=self,
            open_streams=service.open_streams,
        )
        if route.receive is not None:
            self._sink = route.receive(request, size)
        self._request = request

    def _require_route(self) -> Route:
        if self._route is None:
            raise AssertionError("the method was admitted")
        return self._route

    def _require_body(self) -> Body:
        if self._body is None:
            raise AssertionError("a body was admitted")
        return self._body

    def _has_body(self, size: int) -> bool:
        return size > 0 or "Transfer-Encoding" in self.request.headers

    def _allow(self, size: int, seconds: float) -> None:
        connection: Any = self.request.connection
        connection.set_max_body_size(size)
        connection.set_body_timeout(seconds)

    def _size(self) -> int:
        text = self.request.headers.get("Content-Length", "0")
        return int(text) if text.isdecimal() else 0

    def _collect(self, chunk: bytes) -> None:
        limit = self._route.operation.max_body if self._route else 0
        body = self._require_body()
        body.add(chunk)
        if body.received > limit:
            raise too_large(body.received, limit)

    def _with_body(self, route: Route, request: Request) -> Request:
        if self._sink is not None:
            if self._body is not None:
                self._body.whole()
            return dataclasses.replace(request, body=self._sink)
        data = self._body.whole() if self._body is not None else b""
        match route.operation.takes:
            case Media.JSON:
                body: Any = decoding.body(data, route.operation.body or dict)
            case Media.YAML:
                body = decoding.text(data)
            case _:
                body = None
        return dataclasses.replace(request, body=body)

    # ------------------------------------------------------------------ answers

    def _answer(self, route: Route, answer: Answer) -> None:
        self.set_status(answer.status)
        for name, value in answer.headers.items():
            self.set_header(name, value)
        if answer.value is None:
            self.clear_header("Content-Type")
            self.set_status(204)
            self.finish()
            return
        if route.operation.gives is Media.JSON:
            self._send(Media.JSON, msgspec.json.encode(answer.value))
        elif isinstance(answer.value, bytes):
            self._send(route.operation.gives, answer.value, answer.headers.get("Content-Type"))

    def _send(self, kind: Media, data: bytes, content_type: str | None = None) -> None:
        self.set_header("Content-Type", content_type or f"{kind}; charset=utf-8")
        self.finish(data)

    def _refuse(self, error: BenchpoolError) -> None:
        self._let_go()
        if self._finished:
            return
        if self._headers_written:
            self.finish()
            return
        self.finish(self._refusal_of(error))

    def _refuse_early(self, error: BenchpoolError, size: int) -> None:
        """Refuse a request before its body has arrived, and discard the body.

        The body must be read: a connection closed while its client sends loses the answer.
        """
        if self._finished or not self._has_body(size):
            return
        self._let_go()
        expects_continue = "Expect" in self.request.headers  # the client waits for "100 Continue"
        if expects_continue or self._service.bodies.lingering >= MOST_LINGERING:
            self._refuse(error)
            return
        self._allow(max(size, MOST_DISCARDED), 2 * LINGER_S)
        if not 0 < size <= SMALL:
            data = self._refusal_of(error)
            self.set_header("Connection", "close")
            self.set_header("Content-Length", str(len(data)))
            self.write(data)
            self.flush()
        self._lingering = asyncio.get_running_loop().call_later(LINGER_S, self._refuse, error)
        self._service.bodies.lingering += 1

    def _cut_off(self, error: BenchpoolError) -> None:
        """Refuse a request whose body arrives too slowly."""
        self._refusal = error
        self._refuse(error)

    def _refusal_of(self, error: BenchpoolError) -> bytes:
        if self._route is not None:
            audit.note(self._service.pool, self._route.operation, self._caller, self, error)
        self.clear()
        self.set_status(error.http_status)
        if isinstance(error, TooMany | TooSlow | Unavailable):
            self.set_header("Retry-After", str(error.numbers.get("retry_after_s", 1)))
        self.set_header("Content-Type", f"{Media.JSON}; charset=utf-8")
        return msgspec.json.encode(error.as_json())

    def _let_go(self) -> None:
        """Release all resources of the request, whatever its outcome."""
        if self._sink is not None:
            self._sink.abort()
        if self._body is not None:
            self._body.let_go()
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
            self._service.bodies.lingering -= 1

    def _as_error(self, failed: Exception) -> BenchpoolError:
        if isinstance(failed, BenchpoolError):
            return failed
        if isinstance(failed, HTTPError) and failed.status_code < 500:
            return Malformed(f"The request cannot be read ({failed.log_message or failed.reason}).")
        reference = secrets.token_hex(4)
        log.error(
            "internal error %s in %s %s",
            reference,
            self.request.method,
            self.request.path,
            exc_info=failed,
        )
        return ServerFault(
            f"Internal error of the scheduler. Its log has the details under {reference}. Please "
            "report it.",
            numbers={"reference": reference},
        )

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer errors raised by Tornado in the format of the API."""
        failed = kwargs.get("exc_info", (None, None, None))[1]
        if failed is None and status_code == 500:  # a cancelled handler
            failed = Unavailable("The scheduler is stopping. Try again in a few seconds.")
        self._refuse(self._as_error(failed or HTTPError(status_code)))

    def on_connection_close(self) -> None:
        super().on_connection_close()  # wakes a pending read of the body
        self.gone.set()
        self._let_go()

    def on_finish(self) -> None:
        self._let_go()
        self._request = None
        name = self._route.operation.name if self._route else "none"
        self._service.traffic.count(name, self.get_status(), self.request.request_time())
