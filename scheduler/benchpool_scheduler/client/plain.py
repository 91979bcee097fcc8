"""``Client``: the operations as plain methods, for terminals, scripts and kernels."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import httpx

from benchpool_scheduler.client import answers, other_versions, sending
from benchpool_scheduler.client.credentials import Credentials
from benchpool_scheduler.client.streams import Followed, Parser, followed
from benchpool_scheduler.contract import ENDED, Job
from benchpool_scheduler.contract.operation import Call, PlainSender
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError, Unavailable

T = TypeVar("T")


class Client(Operations, PlainSender):
    """A connection to one benchpool service, by plain blocking calls.

    Args:
        credentials: Address and token, see ``discover``.
        patience_s: For how long a service that is away is tried again, where a repeat is
            harmless. Streams go on at the place of the cut.
        keyed_patience_s: The same for what carries a key, at least.
        tell: Is told when a call waits for longer than a moment.

    Each operation of the table is a method. All raise the classes of
    ``benchpool_scheduler.errors``.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        patience_s: float = 0.0,
        keyed_patience_s: float = sending.KEYED_PATIENCE_S,
        tell: sending.Tell | None = None,
    ) -> None:
        self.credentials = credentials
        self.patience = sending.Patience(patience_s, keyed_patience_s, tell)
        self._http = httpx.Client(**sending.client_options(credentials, sending.TIMEOUT))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a call of the table and return its answer."""
        tries = self.patience.tries(call)
        while True:
            try:
                return self._once(call, tries.silent)
            except BenchpoolError as failed:
                if other_versions.lacks_key(call, failed):
                    raise other_versions.lacking(call, failed, self._document()) from failed
                pause = tries.pause_after(call, failed)
            time.sleep(pause)

    def _document(self) -> object:
        """Return the service's OpenAPI document, None where it cannot be read."""
        with contextlib.suppress(BenchpoolError):
            return self._once(Operations.openapi.call(), False)
        return None

    def _once(self, call: Call[T], silent: bool) -> T:
        options, content = sending.request_options(call, silent), call.given.content
        method, path = call.operation.method, call.path
        try:
            if isinstance(content, Path):
                with content.open("rb") as file:
                    size = content.stat().st_size
                    options["headers"]["Content-Length"] = str(size)
                    options["content"] = sending.pieces(file, size)
                    answer = self._http.request(method, path, **options)
            else:
                options["content"] = call.body if content is None else content
                answer = self._http.request(method, path, **options)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, self.credentials.url, call) from failed
        return answers.read(
            call, answer.status_code, answer.headers, answer.content, self.credentials.url
        )

    def follow(self, call: Call[T]) -> Iterator[T]:
        """Yield what an event stream tells; after a cut it is opened again where it was."""
        stream, again = followed(call), sending.Reconnecting(self.patience.usual_s)
        while True:
            try:
                yield from self._stream(stream, again)
            except Unavailable as failed:
                again.lost(failed)
            if stream.done:
                return
            time.sleep(again.pause())

    def _stream(self, stream: Followed[T], again: sending.Reconnecting) -> Iterator[T]:
        call, parser, url = stream.call, Parser(), self.credentials.url
        options = sending.stream_options(call)
        try:
            with self._http.stream("GET", call.path, **options) as answer:
                if answer.status_code != 200:
                    raise answers.error(answer.status_code, answer.headers, answer.read(), url)
                again.opened()
                yield from stream.opened()
                for chunk in answer.iter_raw():
                    for event in parser.feed(chunk):
                        again.received()
                        yield from stream.take(event)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, url) from failed

    def wait(self, id_: str) -> Job:
        """Return the job when it has ended."""
        for event in self.events():
            if event.kind in ("open", "reset"):
                job = self.job(id_).job
            elif isinstance(event.data, Job) and event.data.id == id_:
                job = event.data
            else:
                continue
            if job.state in ENDED:
                return job
        raise AssertionError("events never end")
