"""What the agents in workers' pods ask: a table of routes of its own, beside the API for people.

Below ``workers/JOB/ATTEMPT/WORKER/``; an agent proves which worker it is by a token that only
the scheduler can make (``runtime.kubernetes.tokens``). It may fetch what its job came with, and
say what it has to say of itself; nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct
from tornado.web import RequestHandler, stream_request_body, url

from benchpool_scheduler.api.bodies import Bodies, Body
from benchpool_scheduler.contract.operation import MIB
from benchpool_scheduler.errors import (
    BenchpoolError,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    TooLarge,
    Unavailable,
)
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.kubernetes import AgentApi, AgentTokens

log = logging.getLogger(__name__)

PIECE = MIB
MOST_OFFSET = 2**50

WORKER = r"(?P<job>[a-z0-9]{1,26})/(?P<attempt>[1-9][0-9]{0,8})/(?P<worker>0|[1-9][0-9]{0,5})"


class Contents(Protocol):
    """What jobs were submitted with."""

    def read(self, job: str, sha256: str) -> AsyncIterator[bytes]:
        """Yield one content of a job in pieces. Errors: NotFound for any other."""


class ProgressBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a worker says of itself; the same bounds as on a workstation hold."""

    fraction: Annotated[float, Meta(ge=0, le=1)] | None = None
    text: Annotated[str, Meta(max_length=500)] | None = None
    metrics: Annotated[dict[str, float], Meta(max_length=100)] = {}
    checkpoint_at: float | None = None
    checkpoint_step: Annotated[int, Meta(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class Agents:
    """What all routes for agents share."""

    agent_api: AgentApi
    tokens: AgentTokens
    contents: Contents
    carry_bytes: int
    bodies: Bodies = field(default_factory=Bodies)
    """Bodies of agents; they never take the room of people's."""

    def rules(self, prefix: str) -> list[Any]:
        """Return Tornado's rules; ``prefix`` ends in a slash."""
        shared = {"agents": self}
        return [
            url(
                f"{prefix}workers/{WORKER}/{route.path}", _AgentEndpoint, {"route": route, **shared}
            )
            for route in ROUTES
        ]


@dataclass(frozen=True, slots=True)
class _Route:
    """One address: how it is answered by method, and how large a body may be."""

    path: str
    methods: dict[str, Callable[[_AgentEndpoint, WorkerId], Awaitable[None]]]
    most_bytes: int = 0
    carries: str = ""


@stream_request_body
class _AgentEndpoint(RequestHandler):
    """All methods of one address for agents."""

    def initialize(self, route: _Route, agents: Agents) -> None:
        self.route, self.agents = route, agents
        self.body = b""
        self._counted: Body | None = None
        self.file: IO[bytes] | None = None
        self.temporary: Path | None = None
        self._refusal: BenchpoolError | None = None
        self.gone = asyncio.Event()

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    def prepare(self) -> None:
        """Identify and admit before the body is read."""
        try:
            self.worker = self._identify()
            size = int(self.request.headers.get("Content-Length", "0"))
            most = self.agents.carry_bytes if self.route.carries else self.route.most_bytes
            if size > most:
                raise _too_large(size, most)
            self._count_body(size, most)
            if self.request.method == "PUT" and self.route.carries:
                self._begin_file()
        except BenchpoolError as refused:
            self._refusal = refused
        except ValueError:
            self._refusal = InvalidInput("The length of the body is no number.")

    def data_received(self, chunk: bytes) -> None:
        if self._refusal is not None:
            return
        try:
            if self._counted is None:
                raise _too_large(len(chunk), 0)
            if self.file is not None:
                self._counted.passed(len(chunk))
                self.file.write(chunk)
                return
            self._counted.add(chunk)
            if self._counted.received > self.route.most_bytes:
                raise _too_large(self._counted.received, self.route.most_bytes)
        except BenchpoolError as refused:
            self._refusal = refused
        except OSError as failed:
            self._refusal = _disk(failed)

    async def _serve(self, **_: str) -> None:
        try:
            if self._refusal is not None:
                raise self._refusal
            if self._counted is not None:
                self.body = self._counted.whole()
            answer = self.route.methods.get(self.request.method or "")
            if answer is None:
                raise NotFound("There is no such address.")
            await answer(self, self.worker)
        except BenchpoolError as refused:
            self._refuse(refused)
        except OSError as failed:
            self._refuse(_disk(failed))
        except Exception:
            log.exception("an agent's %s %s failed", self.request.method, self.request.path)
            self._refuse(Unavailable("The scheduler has a fault in answering this."))

    get = post = put = _serve

    def on_finish(self) -> None:
        self._let_go()

    def on_connection_close(self) -> None:
        super().on_connection_close()  # who waits for the rest of the body is told
        self.gone.set()
        self._let_go()

    # ------------------------------------------------------------------ parts of answers

    def query(self, name: str, least: float, most: float) -> float:
        """Return a number of the address. Errors: InvalidInput."""
        text = self.get_query_argument(name, "")
        try:
            value = float(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise InvalidInput(f"{name} is {text[:50]!r}, not {least:g} to {most:g}.", field=name)
        return value

    def answer(self, value: object) -> None:
        """Answer with JSON."""
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(value))

    def keep_file(self, target: Path) -> None:
        """Put the received file in its place, whole."""
        if self.file is None or self.temporary is None:
            raise InvalidInput("There is no body.")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.temporary.replace(target)
        self.file = self.temporary = None

    def _identify(self) -> WorkerId:
        path = self.path_kwargs
        worker = WorkerId(path["job"], int(path["attempt"]), int(path["worker"]))
        token = self.request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not self.agents.tokens.good(worker, token):
            raise NotAuthenticated("This needs the token of this very worker.")
        self.agents.agent_api.admit(worker)
        return worker

    def _count_body(self, size: int, most: int) -> None:
        """Count the body against what may be on its way. Errors: TooMany."""
        if size == 0 and "Transfer-Encoding" not in self.request.headers:
            return
        connection: Any = self.request.connection
        bodies = self.agents.bodies
        in_memory = 0 if self.route.carries else size
        self._counted = bodies.admit(f"job {self.worker.job[:8]}", in_memory)
        self._counted.watch(self._refuse)
        connection.set_max_body_size(most)
        connection.set_body_timeout(bodies.bounds.longest_s(most))

    def _begin_file(self) -> None:
        target = self.agents.agent_api.carried(
            self.worker.job, self.route.carries, self.worker.worker
        )
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self.file = os.fdopen(os.open(self.temporary, flags, 0o600), "wb")
        except OSError as failed:
            raise _disk(failed) from failed

    def _let_go(self) -> None:
        if self._counted is not None:
            self._counted.let_go()
        self._drop_file()

    def _drop_file(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None
        if self.temporary is not None:
            self.temporary.unlink(missing_ok=True)

    def _refuse(self, error: BenchpoolError) -> None:
        if self._finished:
            return
        if self._headers_written:
            # Half an answer must not look like a whole one.
            self.request.connection.stream.close()  # type: ignore[union-attr]
            return
        self._let_go()
        self.set_status(error.http_status)
        if "retry_after_s" in error.numbers:
            self.set_header("Retry-After", str(error.numbers["retry_after_s"]))
        self.answer(error.as_json())


# --------------------------------------------------------------------------- answers


async def _notice(at: _AgentEndpoint, worker: WorkerId) -> None:
    known = at.get_query_argument("known", "")
    wait_s = at.query("wait_s", 0, 120)
    asking = asyncio.create_task(at.agents.agent_api.notice(worker, known, wait_s))
    gone = asyncio.create_task(at.gone.wait())
    try:
        await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not asking.done():
            asking.cancel()
    if at.gone.is_set():
        return
    found = asking.result()
    if found is None:
        at.set_status(204)
        at.finish()
        return
    at.answer({"kind": found.kind, "grace_s": found.grace_s, "for": found.for_, "text": found.text})


async def _log(at: _AgentEndpoint, worker: WorkerId) -> None:
    offset = int(at.query("offset", 0, MOST_OFFSET))
    data = at.body
    after = await asyncio.to_thread(at.agents.agent_api.append, worker, offset, data)
    at.agents.agent_api.grew(worker)
    at.answer({"next": after})


async def _progress(at: _AgentEndpoint, worker: WorkerId) -> None:
    try:
        said = msgspec.json.decode(at.body, type=ProgressBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise InvalidInput(f"The progress cannot be read: {bad}.") from bad
    saved = (said.checkpoint_at, said.checkpoint_step)
    at.agents.agent_api.progress(worker, said.fraction, said.text, said.metrics, *saved)
    at.answer({})


async def _object(at: _AgentEndpoint, worker: WorkerId) -> None:
    pieces = at.agents.contents.read(worker.job, at.path_kwargs["sha256"])
    at.set_header("Content-Type", "application/octet-stream")
    async for piece in pieces:
        at.write(piece)
        await at.flush()
    at.finish()


async def _carried(at: _AgentEndpoint, worker: WorkerId) -> None:
    index = int(at.path_kwargs["index"])
    path = at.agents.agent_api.carried(worker.job, "checkpoint", index)
    try:
        file = await asyncio.to_thread(open, path, "rb")
    except FileNotFoundError:
        raise NotFound("Nothing was saved yet.") from None
    with file:
        at.set_header("Content-Type", "application/octet-stream")
        while piece := await asyncio.to_thread(file.read, PIECE):
            at.write(piece)
            await at.flush()
    at.finish()


async def _keep(at: _AgentEndpoint, worker: WorkerId) -> None:
    at.agents.agent_api.admit(worker)  # it may have ended while its body came
    target = at.agents.agent_api.carried(worker.job, at.route.carries, worker.worker)
    await asyncio.to_thread(at.keep_file, target)
    at.answer({})


ROUTES = (
    _Route("notice", {"GET": _notice}),
    _Route("log", {"POST": _log}, MIB),
    _Route("progress", {"POST": _progress}, 64 * 1024),
    _Route("objects/(?P<sha256>[0-9a-f]{64})", {"GET": _object}),
    _Route("checkpoint/(?P<index>0|[1-9][0-9]{0,5})", {"GET": _carried}),
    _Route("checkpoint", {"PUT": _keep}, carries="checkpoint"),
    _Route("results", {"PUT": _keep}, carries="results"),
)
"""Every address that an agent may use."""


def _too_large(size: int, most: int) -> TooLarge:
    return TooLarge(
        f"The body has {size} bytes, the limit here is {most}.",
        numbers={"bytes": size, "limit": most},
    )


def _disk(failed: OSError) -> Unavailable:
    return Unavailable(f"The scheduler's disk takes nothing now ({failed.strerror}); try again.")
