"""Base for all agent routes: identification, body limits and error answers."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import msgspec
from tornado.web import RequestHandler, stream_request_body

from benchpool_scheduler.api.bodies import Bodies, Body
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

T = TypeVar("T")


class Contents(Protocol):
    """Files that jobs were submitted with."""

    def read(self, job: str, sha256: str) -> AsyncIterator[bytes]:
        """Yield one file of a job in chunks.

        Raises:
            NotFound: The job has no file with this hash.
        """


@dataclass(frozen=True, slots=True)
class Agents:
    """Objects shared by all agent routes."""

    agent_api: AgentApi
    tokens: AgentTokens
    contents: Contents
    carry_bytes: int
    bodies: Bodies = field(default_factory=Bodies)
    """Limits for agents' bodies, separate from those for users."""


@dataclass(frozen=True, slots=True)
class AgentRoute:
    """One agent route: handlers by method, and the body size limit."""

    path: str
    methods: dict[str, Callable[[AgentEndpoint, WorkerId], Awaitable[None]]]
    most_bytes: int = 0
    carries: str = ""


@stream_request_body
class AgentEndpoint(RequestHandler):
    """Tornado handler for all methods of one agent route."""

    def initialize(self, route: AgentRoute, agents: Agents) -> None:
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
        """Identify and admit the agent before its body is read."""
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
            self._refusal = InvalidInput("The length of the body is not a number.")

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
                raise NotFound("The address does not exist.")
            await answer(self, self.worker)
        except BenchpoolError as refused:
            self._refuse(refused)
        except OSError as failed:
            self._refuse(_disk(failed))
        except Exception:
            log.exception("an agent's %s %s failed", self.request.method, self.request.path)
            self._refuse(Unavailable("Internal error of the scheduler."))

    get = post = put = _serve

    def on_finish(self) -> None:
        self._let_go()

    def on_connection_close(self) -> None:
        super().on_connection_close()  # wakes a pending read of the body
        self.gone.set()
        self._let_go()

    # ------------------------------------------------------------------ parts of answers

    async def unless_gone(self, asked: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of ``asked``, or None if the agent disconnects first."""
        asking = asyncio.create_task(asked)
        gone = asyncio.create_task(self.gone.wait())
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not asking.done():
                asking.cancel()
        return None if self.gone.is_set() else asking.result()

    def query(self, name: str, least: float, most: float) -> float:
        """Return a numeric query parameter.

        Raises:
            InvalidInput: The parameter is missing, not a number, or out of range.
        """
        text = self.get_query_argument(name, "")
        try:
            value = float(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise InvalidInput(f"{name} is {text[:50]!r}, not {least:g} to {most:g}.", field=name)
        return value

    def answer(self, value: object) -> None:
        """Send ``value`` as a JSON answer."""
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(value))

    def keep_file(self, target: Path) -> None:
        """Move the complete received file to ``target`` atomically."""
        if self.file is None or self.temporary is None:
            raise InvalidInput("The body is missing.")
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
            raise NotAuthenticated("This needs the token of this worker.")
        self.agents.agent_api.admit(worker)
        return worker

    def _count_body(self, size: int, most: int) -> None:
        """Admit the body under the limits for bodies in transfer. Errors: TooMany."""
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
            # A partial answer must not look like a complete one.
            self.request.connection.stream.close()  # type: ignore[union-attr]
            return
        self._let_go()
        self.set_status(error.http_status)
        if "retry_after_s" in error.numbers:
            self.set_header("Retry-After", str(error.numbers["retry_after_s"]))
        self.answer(error.as_json())


def _too_large(size: int, most: int) -> TooLarge:
    return TooLarge(
        f"The body has {size} bytes; the limit is {most}.",
        numbers={"bytes": size, "limit": most},
    )


def _disk(failed: OSError) -> Unavailable:
    return Unavailable(
        f"The scheduler cannot write to its disk now ({failed.strerror}). Try again."
    )
