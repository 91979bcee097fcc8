"""What a replica answers while another one leads: its own health, and else what the leader says.

Requests are handed on as they are, bodies and event streams piece by piece; who asks does not
notice which replica it has reached. While nobody leads, or the leader does not answer, everything
but ``health`` is 503 with ``Retry-After``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import msgspec
from tornado.iostream import StreamClosedError
from tornado.web import RequestHandler, stream_request_body

from benchpool_scheduler.api.bodies import Bodies, Body, BodyBounds
from benchpool_scheduler.contract import API_VERSION, Liveness
from benchpool_scheduler.errors import BenchpoolError, TooMany, Unavailable
from benchpool_scheduler.service.jobs.uploads import OBJECT_BYTES

log = logging.getLogger(__name__)

RETRY_S = 2
HANDED_ON = "X-Benchpool-Handed-On"
QUIET_S = 120.0
HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailers", "transfer-encoding", "upgrade", "content-length"),
    }
)
"""Headers that are about one connection, not about the request."""

Leader = Callable[[], tuple[str, str] | None]
"""Returns name and URL (without a slash at its end) of the leader; None while nobody leads."""


def rules(prefix: str, leader: Leader, http: httpx.AsyncClient) -> list[Any]:
    """Return Tornado's rules below a prefix that ends in a slash."""
    bounds = BodyBounds()
    # Who sends is not known here; the leader counts what each of them may.
    bodies = Bodies(replace(bounds, user_requests=bounds.all_requests))
    return [
        (rf"{prefix}api/{API_VERSION}/health", _Health),
        (r".*", _Elsewhere, {"leader": leader, "http": http, "bodies": bodies}),
    ]


def client() -> httpx.AsyncClient:
    """Return what requests are handed on by."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    timeout = httpx.Timeout(QUIET_S, connect=3.0)
    return httpx.AsyncClient(
        limits=limits, timeout=timeout, follow_redirects=False, trust_env=False
    )


class _Health(RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.finish(msgspec.json.encode(Liveness(ok=True)))


@stream_request_body
class _Elsewhere(RequestHandler):
    def initialize(self, leader: Leader, http: httpx.AsyncClient, bodies: Bodies) -> None:
        self._leader = leader
        self._bodies = bodies
        self._counted: Body | None = None
        self._http = http
        self._body: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)
        self._asking: asyncio.Task[None] | None = None

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.clear_header("Content-Type")

    def prepare(self) -> None:
        found = self._leader()
        connection: Any = self.request.connection
        connection.set_max_body_size(2**40)  # the leader says what is too large
        connection.set_body_timeout(self._bodies.bounds.longest_s(OBJECT_BYTES))
        if found is None or HANDED_ON in self.request.headers:
            self._refuse(None if found is None else found[0])
            return
        if self._has_body():
            try:
                self._counted = self._bodies.admit("those who ask this replica", 0)
            except TooMany as refused:
                self._answer(refused)
                return
            self._counted.watch(self._cut_off)
        self._asking = asyncio.create_task(self._ask(*found))

    async def data_received(self, chunk: bytes) -> None:
        if self._asking is None or self._asking.done():
            return
        if self._counted is not None:
            self._counted.passed(len(chunk))
        await self._body.put(chunk)

    async def _serve(self) -> None:
        if self._counted is not None:
            self._counted.whole()
        if self._asking is not None:
            await self._body.put(None)
            await asyncio.wait([self._asking])
            if not self._asking.cancelled():  # as it is when who asked went away
                with suppress(StreamClosedError):  # the same, found out in another place
                    self._asking.result()

    get = post = put = delete = patch = head = options = _serve

    def on_connection_close(self) -> None:
        super().on_connection_close()  # who waits for the rest of the body is told
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

    def check_xsrf_cookie(self) -> None:
        """Leave that to who answers."""

    async def _ask(self, name: str, url: str) -> None:
        request = self.request
        headers = [
            (key, value) for key, value in request.headers.get_all() if key.lower() not in HOP
        ]
        length = request.headers.get("Content-Length")
        content = self._pieces() if self._has_body() else None
        if length is not None:
            headers.append(("Content-Length", length))
        headers.append((HANDED_ON, "1"))
        if "X-Forwarded-For" not in request.headers:
            headers.append(("X-Forwarded-For", request.remote_ip or ""))
        asked = self._http.build_request(
            request.method or "GET", url + (request.uri or "/"), headers=headers, content=content
        )
        try:
            answer = await self._http.send(asked, stream=True)
        except httpx.HTTPError as failed:
            log.warning("%s at %s does not answer: %r", name, url, failed)
            self._refuse(name)
            return
        try:
            await self._hand_back(answer)
        except httpx.HTTPError as failed:
            log.warning("the answer of %s broke off: %r", name, failed)
            # Half an answer must not look like a whole one.
            request.connection.stream.close()  # type: ignore[union-attr]
        finally:
            await answer.aclose()

    async def _hand_back(self, answer: httpx.Response) -> None:
        self.set_status(answer.status_code)
        for key, value in answer.headers.multi_items():
            if key.lower() not in HOP:
                self.add_header(key, value)
        if answer.status_code != 204 and "content-length" in answer.headers:
            self.set_header("Content-Length", answer.headers["content-length"])
        await self.flush()
        async for piece in answer.aiter_raw():
            self.write(piece)
            await self.flush()
        await self.finish()

    async def _pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._body.get()) is not None:
            yield piece

    def _refuse(self, name: str | None) -> None:
        who = f"{name} leads and does not answer" if name else "no replica leads at the moment"
        error = Unavailable(
            f"This replica of the scheduler stands by: {who}. Running jobs go on; try again in a "
            "few seconds.",
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
