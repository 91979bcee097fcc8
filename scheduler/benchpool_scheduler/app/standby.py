"""Answers of a standby replica: its own health, and otherwise the leader's answers.

Requests are forwarded unchanged, with streamed bodies and event streams. The client does not notice
which replica it has reached. Without a leader, or while the leader is not alive, everything except
``health`` returns 503 with ``Retry-After`` within seconds. The leader may take any time for an
answer while its health check succeeds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import httpx
import msgspec
from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError
from tornado.web import RequestHandler, stream_request_body

from benchpool_scheduler.api.bodies import Bodies, Body, BodyBounds
from benchpool_scheduler.api.callers import shows
from benchpool_scheduler.api.metrics import CONTENT_TYPE, standing_by
from benchpool_scheduler.app.request_origin import HANDED_ON, RequestOrigins
from benchpool_scheduler.app.socket_relay import SocketRelay
from benchpool_scheduler.contract import API_VERSION, Liveness
from benchpool_scheduler.contract.forwarding import RequestSource
from benchpool_scheduler.errors import BenchpoolError, TooMany, Unavailable
from benchpool_scheduler.gate.backend_connections import ConnectionRefused
from benchpool_scheduler.service.jobs.uploads import OBJECT_BYTES

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

RETRY_S = 2
QUIET_S = 120.0
"""Time without data within an answer after which the leader's health is checked, in seconds."""
LOOK_S = 2.0
"""Interval of health checks while a request waits for its answer, in seconds."""
ALIVE_S = 3.0
"""Timeout of a health check of the leader, in seconds.

A suspended leader does not answer, and would block clients for minutes.
"""
REST_S = 2.0
HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailers", "transfer-encoding", "upgrade", "content-length"),
    }
)
"""Headers that belong to one connection, not to the request."""

OWN_HEADERS = frozenset({"x-forwarded-for", "x-forwarded-proto", HANDED_ON.lower()})
"""Headers that the replica sets itself in requests to the leader."""

Leader = Callable[[], tuple[str, str] | None]
"""Returns name and URL (without a trailing slash) of the leader, or None without a leader."""


def rules(
    prefix: str,
    leader: Leader,
    http: httpx.AsyncClient,
    metrics_token: str = "",
    origins: RequestOrigins | None = None,
) -> list[Any]:
    """Return Tornado's rules below a prefix that ends in a slash. ``origins`` signs requests."""
    bounds = BodyBounds()
    # The sender is unknown here. The leader applies the limits per user.
    bodies = Bodies(replace(bounds, user_requests=bounds.all_requests))
    root = f"{prefix}api/{API_VERSION}"
    handing_on = {
        "leader": leader,
        "http": http,
        "bodies": bodies,
        "health": f"{root}/health",
        "origins": origins or RequestOrigins(),
    }
    return [
        (rf"{root}/health", _Health),
        (rf"{root}/metrics", _Metrics, {**handing_on, "token": metrics_token}),
        (r".*", _Elsewhere, handing_on),
    ]


def client() -> httpx.AsyncClient:
    """Return the HTTP client that forwards requests."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    timeout = httpx.Timeout(QUIET_S, connect=3.0, read=None)
    made = httpx.AsyncClient(
        limits=limits, timeout=timeout, follow_redirects=False, trust_env=False
    )
    made.headers.clear()  # only the headers of the forwarded request
    return made


class _Health(RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.finish(msgspec.json.encode(Liveness(ok=True)))


@stream_request_body
class _Elsewhere(RequestHandler):
    def initialize(
        self,
        leader: Leader,
        http: httpx.AsyncClient,
        bodies: Bodies,
        health: str,
        origins: RequestOrigins,
    ) -> None:
        self._leader = leader
        self._origins = origins
        self._bodies = bodies
        self._counted: Body | None = None
        self._http = http
        self._health = health
        self._body: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)
        self._taken = False
        self._asking: asyncio.Task[None] | None = None

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.clear_header("Content-Type")

    def prepare(self) -> None:
        found = self._leader()
        connection: Any = self.request.connection
        connection.set_max_body_size(2**40)  # the leader enforces the size limit
        connection.set_body_timeout(self._bodies.bounds.longest_s(OBJECT_BYTES))
        if found is None or HANDED_ON in self.request.headers:
            self._refuse(None if found is None else found[0])
            return
        if self._has_body():
            try:
                self._counted = self._bodies.admit("this replica", 0)
            except TooMany as refused:
                self._answer(refused)
                return
            self._counted.watch(self._cut_off)
        ask = self._ask_for_socket if self._wants_websocket() else self._ask
        self._asking = asyncio.create_task(ask(*found))

    async def data_received(self, chunk: bytes) -> None:
        await self._pass_on(chunk)

    async def _pass_on(self, chunk: bytes | None) -> None:
        """Pass a chunk of the body, or its end (None), to the forwarded request while it runs."""
        if self._asking is None or self._asking.done():
            return
        if self._counted is not None and chunk is not None:
            self._counted.passed(len(chunk))
        putting = asyncio.ensure_future(self._body.put(chunk))
        await asyncio.wait([putting, self._asking], return_when=asyncio.FIRST_COMPLETED)
        putting.cancel()

    async def _serve(self) -> None:
        if self._counted is not None:
            self._counted.whole()
        if self._asking is not None:
            await self._pass_on(None)
            await asyncio.wait([self._asking])
            if not self._asking.cancelled():  # cancelled when the client disconnected
                with suppress(StreamClosedError):  # the client disconnected during a write
                    self._asking.result()

    get = post = put = delete = patch = head = options = _serve

    def on_connection_close(self) -> None:
        super().on_connection_close()  # wakes a pending read of the body
        self._let_go()

    def on_finish(self) -> None:
        if self._counted is not None:
            self._counted.let_go()

    def _cut_off(self, error: BenchpoolError) -> None:
        self._let_go()
        self._answer(error)

    def _let_go(self) -> None:
        if self._counted is not None:
            self._counted.let_go()
        if self._asking is not None:
            self._asking.cancel()

    def _has_body(self) -> bool:
        headers = self.request.headers
        return "Transfer-Encoding" in headers or headers.get("Content-Length", "0") != "0"

    def _wants_websocket(self) -> bool:
        upgrade = self.request.headers.get("Upgrade", "").lower()
        return self.request.method == "GET" and upgrade == "websocket" and not self._has_body()

    def check_xsrf_cookie(self) -> None:
        """Skip the check: the leader makes it."""

    async def _ask(self, name: str, url: str) -> None:
        request, headers = self.request, self._kept_headers()
        length = request.headers.get("Content-Length")
        content = self._pieces() if self._has_body() else None
        if length is not None:
            headers.append(("Content-Length", length))
        asked = self._http.build_request(
            request.method or "GET", url + (request.uri or "/"), headers=headers, content=content
        )
        try:
            answer = await self._answered(asked, name, url)
        except (httpx.HTTPError, TimeoutError) as failed:
            log.warning("%s at %s does not answer: %r", name, url, failed)
            if content is not None:
                await self._read_the_rest()
            self._refuse(name)
            return
        try:
            await self._hand_back(answer, name, url)
        except (httpx.HTTPError, TimeoutError) as failed:
            log.warning("the response of %s was interrupted: %r", name, failed)
            # A partial answer must not look like a complete one.
            request.connection.stream.close()  # type: ignore[union-attr]
        finally:
            await answer.aclose()

    def _origin_headers(self, origin: RequestSource) -> list[tuple[str, str]]:
        """Return the headers that report a request's origin to the leader."""
        return [
            ("X-Forwarded-For", origin.address),
            ("X-Forwarded-Proto", origin.scheme),
            (HANDED_ON, self._origins.signature(origin)),
        ]

    async def _answered(self, asked: httpx.Request, name: str, url: str) -> httpx.Response:
        """Return the leader's answer after its headers, with no timeout while the leader lives.

        Errors: httpx.HTTPError, and TimeoutError when the leader is not alive or has changed.
        """
        return await self._of_leader(self._http.send(asked, stream=True), name, url, LOOK_S)

    async def _of_leader(
        self, work: Awaitable[Answer], name: str, url: str, look_s: float
    ) -> Answer:
        """Return the result of ``work``, with health checks of the leader every ``look_s``."""
        sending = asyncio.ensure_future(work)
        try:
            while True:
                done, _ = await asyncio.wait([sending], timeout=look_s)
                if done:
                    return sending.result()
                now = self._leader()
                if now is not None and now != (name, url):
                    raise TimeoutError(f"{now[0]} leads now")
                if not await self._alive(url):
                    raise TimeoutError(f"it sent no sign of life within {ALIVE_S:g} s")
        finally:
            sending.cancel()

    async def _alive(self, url: str) -> bool:
        """Return whether the leader answers its health check."""
        try:
            async with asyncio.timeout(ALIVE_S):
                await self._http.get(url + self._health)
        except (httpx.HTTPError, TimeoutError):
            return False
        return True

    def _kept_headers(self) -> list[tuple[str, str]]:
        """Return the request's headers without those of its connection, plus its origin."""
        kept = [
            (key, value)
            for key, value in self.request.headers.get_all()
            if key.lower() not in HOP and key.lower() not in OWN_HEADERS
        ]
        return kept + self._origin_headers(
            RequestSource(self.request.remote_ip or "", self.request.protocol)
        )

    async def _ask_for_socket(self, name: str, url: str) -> None:
        headers = HTTPHeaders()
        for key, value in self._kept_headers():
            headers.add(key, value)
        try:
            began = await SocketRelay(self).ask(url, headers)
        except ConnectionRefused as failed:
            log.warning("%s at %s does not answer: %r", name, url, failed)
            began = False
        if not began:
            self._refuse(name)

    async def _hand_back(self, answer: httpx.Response, name: str, url: str) -> None:
        self.set_status(answer.status_code)
        for key, value in answer.headers.multi_items():
            if key.lower() not in HOP:
                self.add_header(key, value)
        if answer.status_code != 204 and "content-length" in answer.headers:
            self.set_header("Content-Length", answer.headers["content-length"])
        await self.flush()
        pieces = answer.aiter_raw()
        while (piece := await self._of_leader(_next(pieces), name, url, QUIET_S)) is not None:
            self.write(piece)
            await self.flush()
        await self.finish()

    async def _pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._body.get()) is not None:
            yield piece
        self._taken = True

    async def _read_the_rest(self) -> None:
        """Read the rest of the body for a short time: a client that still sends reads no answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                while not self._taken:
                    self._taken = await self._body.get() is None

    def _refuse(self, name: str | None) -> None:
        who = f"{name} leads and does not answer" if name else "no replica leads at the moment"
        error = Unavailable(
            f"This replica of the scheduler is on standby: {who}. Running jobs continue. Try "
            "again in a few seconds.",
            code="standing-by",
        )
        if name:
            self.set_header("X-Benchpool-Leader", name)
        self._answer(error)

    def _answer(self, error: BenchpoolError) -> None:
        if self._finished or self._headers_written:
            return
        self.set_status(error.http_status)
        self.set_header("Retry-After", str(error.numbers.get("retry_after_s", RETRY_S)))
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(error.as_json()))


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


class _Metrics(_Elsewhere):
    """Own metrics for a scraper with the metrics token. Other callers get the leader's metrics."""

    def initialize(self, token: str, **handing_on: Any) -> None:  # type: ignore[override]
        super().initialize(**handing_on)
        self._token = token

    def prepare(self) -> None:
        if not shows(self._token, self.request.headers.get("Authorization", "")):
            super().prepare()
            return
        self.set_header("Content-Type", CONTENT_TYPE)
        self.finish(standing_by())
